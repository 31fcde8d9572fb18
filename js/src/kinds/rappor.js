/**
 * RAPPOR on the device: a permanent noisy answer that is drawn once, and a fresh noisy copy of it per report.
 *
 * The permanent bits come from coins that the device remembers for each value, so that any number of reports on
 * one unchanged value tells no more than those bits do; the instantaneous layer only delays how fast they show.
 */

import { Device, bitAt, coded } from "../base.js";
import { InvalidSpec } from "../errors.js";
import { BILLION, WORD, ceilDiv, rootFloor, scaledDecimal, shortestDecimal } from "../numbers/exact.js";
import { bucket, rowSeed } from "../numbers/hashing.js";
import { concat } from "../numbers/sha256.js";
import { SUE, drawBits, symmetricThresholds } from "./unary.js";

const MAX_BITS = 2 ** 16;
const MAX_COHORTS = 2 ** 16;
const MAX_HASHES = 16;

/**
 * Keep a probability field in its shortest form.
 * @param {any} device
 * @param {"zero" | "one"} name
 * @returns {bigint} the probability in billionths
 */
function probability(device, name) {
  const billionths = scaledDecimal(device[name], 9);
  if (billionths < 0n || billionths > BILLION) {
    throw new InvalidSpec(`${device.kind}: ${name} must be decimal text from "0" to "1"`);
  }
  device[name] = shortestDecimal(device[name]);
  return billionths;
}

/**
 * (s1, s0): words that report 1 on a permanent one and zero, rounded towards each other; undefined if one-shot.
 * @param {any} device
 * @returns {[bigint, bigint] | undefined}
 */
function instantThresholds(device) {
  if (device.zero === "" && device.one === "") return undefined;
  const zero = probability(device, "zero");
  const one = probability(device, "one");
  if (zero >= one) {
    throw new InvalidSpec(`${device.kind}: zero must be below one`);
  }
  const s1 = (one * WORD) / BILLION;
  return [s1 < WORD ? s1 : WORD - 1n, ceilDiv(zero * WORD, BILLION)];
}

/** @param {Uint8Array} packed @param {number} size @returns {number[]} the positions of the set bits */
const setBits = (packed, size) =>
  Array.from({ length: size }, (_, i) => i).filter((i) => bitAt(packed, i));

/**
 * Permanent bits from the remembered coins (or the same coins), then fresh bits on top of them.
 * @param {number} size
 * @param {number[]} ones
 * @param {{ thresholds: [bigint, bigint], instant: [bigint, bigint] | undefined }} layers
 * @param {import("../numbers/coins.js").Coins} coins
 * @param {import("../numbers/coins.js").Coins} [permanent]
 * @returns {Uint8Array}
 */
function drawLayers(size, ones, { thresholds, instant }, coins, permanent = coins) {
  const bits = drawBits(size, ones, thresholds, permanent);
  return instant ? drawBits(size, setBits(bits, size), instant, coins) : bits;
}

/** Basic RAPPOR: permanent bits of symmetric unary encoding, reported through an instantaneous layer. */
export class BasicRAPPOR extends SUE {
  static kind = "brappor";
  static fields = ["epsilon", "size", "zero", "one"];

  check() {
    super.check();
    /** @type {[bigint, bigint] | undefined} */
    this.instant = instantThresholds(this);
  }

  /**
   * `size` bits, packed from bit 0; `permanent` are the coins the device remembers for this value.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @param {import("../numbers/coins.js").Coins} [permanent]
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins, permanent) {
    return drawLayers(this.size, [this.index(value)], this, coins, permanent);
  }
}

/** RAPPOR: `hashes` bits of a Bloom filter of `bits`, under the hash functions of one of `cohorts`. */
export class RAPPOR extends Device {
  static kind = "rappor";
  static fields = ["epsilon", "zero", "one", "bits", "cohorts", "key", "hashes"];

  check() {
    /** @type {number} */
    this.hashes = this.checkInteger("hashes", 1, MAX_HASHES);
    /** @type {number} */
    this.bits = this.checkInteger("bits", 2 * this.hashes, MAX_BITS);
    /** @type {number} */
    this.cohorts = this.checkInteger("cohorts", 1, MAX_COHORTS);
    /** @type {number} */
    this.key = this.checkInteger("key", 0, 2 ** 32 - 1);
    /** @type {[bigint, bigint] | undefined} */
    this.instant = instantThresholds(this);
    /** The budget is shared by 2 x hashes bits, equally. @type {[bigint, bigint]} */
    this.thresholds = symmetricThresholds(rootFloor(this.odds, 2 * this.hashes), rootFloor(this.odds, this.hashes));
  }

  /**
   * The Bloom bits of a value in a cohort; two hash functions may agree.
   * @param {number} cohort
   * @param {number | bigint} value
   * @returns {number[]}
   */
  positions(cohort, value) {
    const seed = (/** @type {number} */ i) => rowSeed(this.key, cohort * this.hashes + i);
    return Array.from({ length: this.hashes }, (_, i) => bucket(seed(i), value, this.bits));
  }

  /**
   * The cohort of a device: drawn once, remembered, and independent of every value.
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {number}
   */
  drawCohort(coins) {
    return coins.uniform(this.cohorts);
  }

  /**
   * The cohort (remembered, or drawn first), then `bits` bits packed from bit 0.
   * @param {number | bigint} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @param {import("../numbers/coins.js").Coins} [permanent]
   * @param {number} [cohort]
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins, permanent, cohort) {
    const index = this.index(value, WORD);
    const mine = cohort ?? this.drawCohort(coins);
    if (!(mine >= 0 && mine < this.cohorts)) {
      this.reject(`cohort must be from 0 to ${this.cohorts - 1}`);
    }
    const bits = drawLayers(this.bits, this.positions(mine, index), this, coins, permanent);
    return concat(coded(mine, this.cohorts), bits);
  }
}
