/**
 * Unary encodings on the device: one independent noisy bit per value of the domain.
 *
 * A bit is set with probability t1/2^64 at the true value and t0/2^64 elsewhere; 64 bits are drawn together,
 * comparing random words with the thresholds bit by bit from the top, until every lane is decided.
 *
 * @typedef {[number, number][]} Planes the bits of both thresholds (t1, t0), most significant first: 0 or -1 each
 */

import { Device } from "../base.js";
import { ABSTRACT, InvalidSpec } from "../errors.js";
import { BILLION, WORD, ceilDiv, expFloor, integerRoot, rootFloor, scaledDecimal, shortestDecimal } from "../numbers/exact.js";

const MAX_BITS = 2 ** 16;

/**
 * The smallest t0 that keeps t1 (W - t0) / (t0 (W - t1)) within the odds.
 * @param {bigint} t1
 * @param {bigint} odds
 * @returns {bigint}
 */
export const zeroThreshold = (t1, odds) => ceilDiv(WORD * t1 * WORD, odds * (WORD - t1) + t1 * WORD);

/**
 * (t1, t0): ones and zeros flip alike, each at `bitOdds`, and a pair of them is within `pairOdds`.
 * @param {bigint} bitOdds
 * @param {bigint} pairOdds
 * @returns {[bigint, bigint]}
 */
export function symmetricThresholds(bitOdds, pairOdds) {
  const t1 = WORD - ceilDiv(WORD * WORD, bitOdds + WORD);
  return [t1, zeroThreshold(t1, pairOdds)];
}

/**
 * The bits of both thresholds as masks of 32 lanes, most significant first.
 * @param {bigint} t1
 * @param {bigint} t0
 * @returns {Planes}
 */
function bitPlanes(t1, t0) {
  /** @param {bigint} t @param {number} j */
  const bit = (t, j) => -Number((t >> BigInt(63 - j)) & 1n);
  return Array.from({ length: 64 }, (_, j) => [bit(t1, j), bit(t0, j)]);
}

/** @param {number} count how many of 32 lanes exist @returns {number} */
const laneMask = (count) => (count >= 32 ? -1 : count > 0 ? (1 << count) - 1 : 0);

/**
 * `size` noisy bits of the vector whose set bits are at the positions `ones`, packed from bit 0.
 * @param {number} size
 * @param {Iterable<number>} ones
 * @param {[bigint, bigint]} thresholds (t1, t0)
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {Uint8Array}
 */
export function drawBits(size, ones, thresholds, coins) {
  const planes = bitPlanes(...thresholds);
  const lanes = new Int32Array(2 * Math.ceil(size / 64));
  for (const position of ones) lanes[position >> 5] |= 1 << (position & 31);
  const view = new DataView(new ArrayBuffer(4 * lanes.length));
  for (let i = 0; i < lanes.length; i += 2) {
    let low = laneMask(size - 32 * i);
    let high = laneMask(size - 32 * i - 32);
    let bitsLow = 0;
    let bitsHigh = 0;
    for (let j = 0; j < 64 && (low | high) !== 0; j += 1) {
      const [one, zero] = planes[j];
      const below = (zero & ~lanes[i]) | (one & lanes[i]);
      const above = (zero & ~lanes[i + 1]) | (one & lanes[i + 1]);
      coins.take();
      bitsLow |= low & below & ~coins.low;
      bitsHigh |= high & above & ~coins.high;
      low &= ~(below ^ coins.low);
      high &= ~(above ^ coins.high);
    }
    view.setInt32(4 * i, bitsLow, true);
    view.setInt32(4 * i + 4, bitsHigh, true);
  }
  return new Uint8Array(view.buffer).slice(0, Math.ceil(size / 8));
}

/** A one-hot vector of `size` bits, every bit perturbed on its own. */
export class Unary extends Device {
  static fields = ["epsilon", "size"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_BITS);
    /** (t1, t0): words that set the bit of the true value, and of any other. @type {[bigint, bigint]} */
    this.thresholds = this.split();
  }

  /** How the budget is split between ones and zeros. @returns {[bigint, bigint]} */
  split() {
    throw new InvalidSpec(ABSTRACT);
  }

  /** `size` bits, packed from bit 0. @param {number} value @param {import("../numbers/coins.js").Coins} coins @returns {Uint8Array} */
  privatizeOne(value, coins) {
    return drawBits(this.size, [this.index(value)], this.thresholds, coins);
  }
}

/** Symmetric unary encoding: both kinds of bits flip with probability 1/(e^(epsilon/2) + 1). */
export class SUE extends Unary {
  static kind = "sue";

  /** Half of the budget on ones, half on zeros. @returns {[bigint, bigint]} */
  split() {
    return symmetricThresholds(rootFloor(this.odds, 2), this.odds);
  }
}

/** Optimised unary encoding: the true bit is a fair coin, the whole budget protects the zeros. */
export class OUE extends Unary {
  static kind = "oue";

  /** A fair coin and 1/(e^epsilon + 1). @returns {[bigint, bigint]} */
  split() {
    return [WORD / 2n, zeroThreshold(WORD / 2n, this.odds)];
  }
}

/** Re-optimised unary encoding: the split of the budget that is best for this domain size. */
export class RUE extends Unary {
  static kind = "rue";

  /** p = 1/(1 + h), h = sqrt((d - 1 + 1/E) / (d - 1 + E)), in integers. @returns {[bigint, bigint]} */
  split() {
    const others = BigInt(this.size - 1) * WORD;
    const h = integerRoot(((others + (WORD * WORD) / this.odds) << 128n) / (others + this.odds), 2n);
    const t1 = (WORD * WORD) / (WORD + h);
    return [t1, zeroThreshold(t1, this.odds)];
  }
}

/** Thresholding with histogram encoding: Laplace noise of scale 2/epsilon, then one bit above theta. */
export class THE extends Unary {
  static kind = "the";
  static fields = ["epsilon", "size", "theta"];

  /** 1 - exp(epsilon (theta - 1)/2)/2 and exp(-epsilon theta/2)/2. @returns {[bigint, bigint]} */
  split() {
    const theta = this.parseTheta();
    const [numerator, denominator] = this.budget.declared;
    /** @param {bigint} billionths */
    const half = (billionths) =>
      ceilDiv(WORD * WORD, 2n * expFloor([numerator * billionths, denominator * 2n * BILLION]));
    const t1 = WORD - half(BILLION - theta);
    const floor = zeroThreshold(t1, this.odds);
    const t0 = half(theta);
    return [t1, t0 > floor ? t0 : floor];
  }

  /** Keep theta in its shortest form. @returns {bigint} theta in billionths */
  parseTheta() {
    const { theta: given } = /** @type {any} */ (this);
    const theta = scaledDecimal(given, 9);
    if (2n * theta < BILLION || theta > BILLION) {
      this.reject('theta must be decimal text from "0.5" to "1"');
    }
    /** @type {string} */
    this.theta = shortestDecimal(given);
    return theta;
  }
}
