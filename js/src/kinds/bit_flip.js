/** dBitFlip on the device: noisy bits of a few buckets that were drawn without looking at the value. */

import { Device, bitmap, coded, setBit } from "../base.js";
import { WORD, rootFloor } from "../numbers/exact.js";
import { lowCell } from "./grr.js";
import { distinct } from "./hadamard.js";
import { concat } from "../numbers/sha256.js";
import { symmetricThresholds } from "./unary.js";

const MAX_BUCKETS = 2 ** 24;
const MAX_SAMPLED = 64;

/** `sampled` of `size` buckets, drawn at random, and a noisy bit for each: is it the true one? */
export class DBitFlip extends Device {
  static kind = "dbitflip";
  static fields = ["epsilon", "size", "sampled"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_BUCKETS);
    const most = Math.min(this.size, MAX_SAMPLED);
    /** @type {number} */
    this.sampled = this.checkInteger("sampled", 1, most);
    /** (t1, t0): words that set the bit of the true bucket, and of any other. @type {[bigint, bigint]} */
    this.thresholds = thresholds(this.odds, this.sampled);
  }

  /** @param {import("../numbers/coins.js").Coins} coins @returns {number[]} the sampled buckets in increasing order */
  drawBuckets(coins) {
    return distinct(this.sampled, this.size, coins);
  }

  /**
   * The report on these buckets, one word per bit: bucket numbers, then bits packed from bit 0.
   * @param {number[]} buckets
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  answer(buckets, value, coins) {
    const index = this.index(value);
    const bits = bitmap(this.sampled);
    buckets.forEach((bucket, i) => {
      if (coins.below(this.thresholds[Number(bucket !== index)])) setBit(bits, i);
    });
    return concat(...buckets.map((bucket) => coded(bucket, this.size)), bits);
  }

  /**
   * Two words per sampled bucket: first all buckets, then all bits.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    return this.answer(this.drawBuckets(coins), value, coins);
  }

  /**
   * What a repeated answer is memoised under: a sampled bucket itself, or one class for all others.
   * @param {number[]} buckets
   * @param {number} value
   * @returns {string}
   */
  memoKey(buckets, value) {
    const index = this.index(value);
    return buckets.includes(index) ? String(index) : "none";
  }
}

/**
 * A single sampled bit may spend the whole budget; of several, two differ between two values.
 * @param {bigint} odds
 * @param {number} sampled
 * @returns {[bigint, bigint]}
 */
function thresholds(odds, sampled) {
  if (sampled === 1) {
    const low = lowCell(odds, 2);
    return [WORD - low, low];
  }
  return symmetricThresholds(rootFloor(odds, 2), odds);
}
