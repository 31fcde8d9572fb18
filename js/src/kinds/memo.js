/**
 * Memoisation: the same answer gets the same report for ever, from coins derived of one secret on the device.
 * What repetition still reveals, a change of the answer above all, is stated in docs/maths/memo.md.
 */

import { Device, coded, innerOf, littleEndian, randomBytes } from "../base.js";
import { asBudget } from "../numbers/budget.js";
import { Coins } from "../numbers/coins.js";
import { InvalidSpec } from "../errors.js";
import { WORD, ceilDiv } from "../numbers/exact.js";
import { grrDraw } from "./grr.js";
import { parity } from "./hadamard.js";
import { alphaRound } from "./mean.js";
import { concat, hex, hmac, unhex, utf8 } from "../numbers/sha256.js";

/** Bytes of the secret of a device. */
export const KEY_BYTES = 32;

/** @param {number} x below 2^53 @param {number} width @returns {Uint8Array} */
const bigEndian = (x, width) => littleEndian(x, width).reverse();

/** @param {string} label @param {...Uint8Array} parts each preceded by its length @returns {Uint8Array} */
export const message = (label, ...parts) => concat(utf8(label), ...parts.flatMap((part) => [bigEndian(part.length, 4), part]));

/** Coins of one value: HMAC-SHA-256 under the secret of label, campaign, parameters, value key and counter. */
export class MemoCoins extends Coins {
  secure = true;
  #key;
  #prefix;
  #counter = 0;

  /**
   * @param {Uint8Array} key
   * @param {string} campaign
   * @param {Uint8Array} parameters the digest of everything the mechanism depends on
   * @param {Uint8Array} valueKey
   */
  constructor(key, campaign, parameters, valueKey) {
    super();
    this.#key = Uint8Array.from(key);
    this.#prefix = message("LDP-MEMO-1", utf8(campaign), parameters, valueKey);
  }

  /** Four big-endian words of one digest. */
  draw() {
    const block = hmac(this.#key, concat(this.#prefix, bigEndian(this.#counter, 8)));
    this.#counter += 1;
    const view = new DataView(block.buffer);
    return [0, 8, 16, 24].flatMap((at) => [view.getUint32(at + 4), view.getUint32(at)]);
  }
}

/** What a device keeps between reports: its secret, keyed hashes of answered values, the last report. */
export class Memory {
  /**
   * @param {Uint8Array} secret 32 random bytes, made once per campaign and never sent
   * @param {string} campaign
   * @param {{seen?: string[], last?: Uint8Array}} [kept]
   */
  constructor(secret, campaign, { seen = [], last = new Uint8Array() } = {}) {
    if (secret.length !== KEY_BYTES) {
      throw new InvalidSpec(`memo: the secret must have ${KEY_BYTES} random bytes`);
    }
    this.secret = Uint8Array.from(secret);
    this.campaign = campaign;
    /** Keyed hashes of the values that were answered, in hexadecimal. */
    this.seen = [...seen];
    this.last = last;
  }

  /** @param {Uint8Array} parameters @param {string} valueKey @returns {MemoCoins} the coins of one value */
  coins(parameters, valueKey) {
    return new MemoCoins(this.secret, this.campaign, parameters, utf8(valueKey));
  }

  /**
   * Whether this value may be answered: seen before, or still below the cap and then noted.
   * @param {Uint8Array} parameters
   * @param {string} valueKey
   * @param {number} most
   * @returns {boolean}
   */
  admit(parameters, valueKey, most) {
    const noted = message("LDP-MEMO-SEEN-1", utf8(this.campaign), parameters, utf8(valueKey));
    const tag = hex(hmac(this.secret, noted));
    if (this.seen.includes(tag)) return true;
    if (this.seen.length >= most) return false;
    this.seen.push(tag);
    return true;
  }
}

/** A mechanism whose answer to the same value never changes, for at most `most_values` different values. */
export class Memoized extends Device {
  static kind = "memo";
  static fields = ["epsilon", "inner", "most_values", "step"];

  /** The kinds that may be memoised. */
  static inside = ["grr", "sue", "oue", "rue", "onebit", "dbitflip"];

  check() {
    /** @type {any} */
    this.inner = innerOf(this, /** @type {any} */ (this.type).inside);
    /** @type {number} */
    this.most_values = this.checkInteger("most_values", 1, 2 ** 16);
    if (this.inner.odds > this.odds) {
      this.reject("epsilon must be at least that of the inner mechanism");
    }
    // Numbers alone are rounded.
    const { top = 0 } = this.inner;
    /** @type {number} */
    this.step = this.checkInteger("step", Math.min(top, 1), top);
    if (top % this.step) this.reject("step must be a divisor of top");
    /** The digest that separates the coins of this mechanism from those of any other. @type {Uint8Array} */
    this.parameters = unhex(this.digest);
  }

  get valueCount() {
    return this.inner.valueCount;
  }

  get repeats() {
    return true;
  }

  /**
   * The report of a device that keeps its memory as text, and what it keeps from now on.
   * @param {any} value
   * @param {string} secret in hexadecimal
   * @param {string} campaign
   * @param {{seen: string[], last: string}} [kept]
   * @param {Coins} [coins] for kinds that add fresh noise
   * @returns {{report: Uint8Array, kept: {seen: string[], last: string}}}
   */
  repeat(value, secret, campaign, { seen, last } = { seen: [], last: "" }, coins = undefined) {
    const memory = new Memory(unhex(secret), campaign, { seen, last: unhex(last) });
    const report = this.report(value, memory, coins);
    return { report, kept: { seen: memory.seen, last: hex(memory.last) } };
  }

  /**
   * The first report of a new device, whose secret is the next four coin words.
   * @param {any} value
   * @param {Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    return this.report(value, new Memory(randomBytes(coins, KEY_BYTES / 8), ""), coins);
  }

  /**
   * The report of a device with a memory: what this value always gets; beyond the cap, the last one.
   * @param {any} value
   * @param {Memory} memory
   * @param {Coins} [_coins]
   * @returns {Uint8Array}
   */
  report(value, memory, _coins) {
    const [key, report] = this.answerOf(value, memory);
    if (memory.admit(this.parameters, key, this.most_values)) memory.last = report;
    return memory.last;
  }

  /**
   * The key of a value, after rounding or sampling with coins drawn once, and the report under it.
   * @param {any} value
   * @param {Memory} memory
   * @returns {[string, Uint8Array]}
   */
  answerOf(value, memory) {
    const { inner, parameters } = this;
    const once = memory.coins(parameters, "once");
    if (inner.kind === "dbitflip") {
      const buckets = inner.drawBuckets(once);
      const key = inner.memoKey(buckets, value);
      return [key, inner.answer(buckets, value, memory.coins(parameters, key))];
    }
    const given = this.index(value, this.valueCount);
    const index = this.step ? alphaRound(given, once.uniform(this.step), this.step) : given;
    return [String(index), inner.privatizeOne(index, memory.coins(parameters, String(index)))];
  }
}

/** A permanent noisy answer per key, reported with fresh noise on top: `first` for one report, epsilon for any number. */
export class LayeredMemo extends Memoized {
  static kind = "layered";
  static fields = ["epsilon", "first", "inner", "most_values", "step"];
  static inside = ["grr", "hrr", "onebit"];

  check() {
    super.check();
    const { wire, odds } = asBudget(/** @type {any} */ (this).first);
    /** @type {import("../numbers/budget.js").WireBudget} */
    this.first = wire;
    if (/** @type {any} */ (wire).sampled) this.reject("first must not be amplified");
    if (odds >= this.inner.odds) this.reject("first must be below the epsilon of the inner mechanism");
    const { kind, low, slope, top } = this.inner;
    /** Permanent answers: every value of grr, a sign or a bit of the others. @type {number} */
    this.answers = kind === "grr" ? this.inner.size : 2;
    /** Words of each other answer in the fresh layer; rounded up, so that less is kept. @type {bigint} */
    this.freshLow = kind === "onebit" ? freshBit(odds, low, low + slope * BigInt(top)) : freshCell(odds, low, BigInt(this.answers));
    if (this.freshLow * BigInt(this.answers) >= WORD) this.reject("first must be larger to be told apart from 0");
  }

  /** @param {any} value @param {Memory} memory @param {Coins} [coins] @returns {Uint8Array} */
  report(value, memory, coins) {
    if (!coins) throw new InvalidSpec("layered: a report needs coins for its fresh layer");
    const permanent = super.report(value, memory).reduceRight((sum, byte) => 256 * sum + byte, 0);
    // The row of hrr stands before the answer, 2 * row + sign, and is sent as it is.
    const answer = permanent % this.answers;
    const drawn = permanent - answer + grrDraw(answer, this.answers, this.freshLow, coins);
    return coded(drawn, this.inner.kind === "hrr" ? 2 * this.inner.order : this.answers);
  }

  /** @param {any} value @param {Memory} memory @returns {[string, Uint8Array]} */
  answerOf(value, memory) {
    const { inner, parameters } = this;
    if (inner.kind !== "hrr") return super.answerOf(value, memory);
    // One row for life, whose sign is what is memoised.
    const row = inner.least + memory.coins(parameters, "once").uniform(inner.order - inner.least);
    const key = String(parity(row & inner.index(value)));
    return [key, inner.rowReport(row, value, memory.coins(parameters, key))];
  }
}

/**
 * Words of each other answer in a fresh layer over an answer of `size` values with `low` words each.
 * @param {bigint} first odds of one report
 * @param {bigint} low
 * @param {bigint} size
 * @returns {bigint}
 */
function freshCell(first, low, size) {
  const [kept, needed] = [WORD - size * low, first + (size - 1n) * WORD];
  return ceilDiv(WORD * (needed * kept - (first - WORD) * WORD), size * needed * kept);
}

/**
 * Words of the flip of a bit that is set by `low` words at one end and by `high` at the other.
 * @param {bigint} first odds of one report
 * @param {bigint} low
 * @param {bigint} high
 * @returns {bigint}
 */
function freshBit(first, low, high) {
  const excess = high * WORD - first * low;
  return ceilDiv(WORD * excess, (first - WORD) * WORD + 2n * excess);
}
