/** Local hashing on the device: hash the value to a few buckets, then randomised response on the bucket. */

import { Device, coded, littleEndian } from "../base.js";
import { WORD } from "../numbers/exact.js";
import { grrDraw, lowCell } from "./grr.js";
import { bucket, rowSeed } from "../numbers/hashing.js";
import { concat } from "../numbers/sha256.js";

const MAX_BUCKETS = 2 ** 16;

/** A fresh 32-bit seed per report and the noisy bucket of the value under it. */
class LocalHash extends Device {
  static fields = ["epsilon", "size"];

  check() {
    /** @type {number | bigint} */
    this.size = this.checkSize(WORD);
    /** Number of buckets. @type {number} */
    this.g = this.checkBuckets();
    /** Words of each untrue bucket. @type {bigint} */
    this.low = lowCell(this.odds, this.g);
  }

  /** Number of buckets. @returns {number} */
  checkBuckets() {
    return 2;
  }

  /**
   * Two words: the seed (upper half of the first) and the bucket.
   * @param {number | bigint} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    coins.take();
    const seed = coins.high;
    const noisy = grrDraw(bucket(seed, index, this.g), this.g, this.low, coins);
    return concat(littleEndian(seed, 4), coded(noisy, this.g));
  }
}

/** Binary local hashing: two buckets. */
export class BLH extends LocalHash {
  static kind = "blh";
}

/** Optimised local hashing: the number of buckets of least variance, near e^epsilon + 1. */
export class OLH extends LocalHash {
  static kind = "olh";
  static fields = ["epsilon", "size", "buckets", "state"];

  get fitsWord() {
    return true;
  }

  checkBuckets() {
    this.choice("state", "counts", "log");
    return this.checkInteger("buckets", 2, MAX_BUCKETS);
  }
}

/** Local hashing with a public pool of `pool` hash functions, so that the server keeps a small table. */
class Pooled extends LocalHash {
  static fields = ["epsilon", "size", "pool", "key"];

  check() {
    super.check();
    /** @type {number} */
    this.pool = this.checkInteger("pool", 1, 2 ** 24);
    /** @type {number} */
    this.key = this.checkInteger("key", 0, 2 ** 32 - 1);
  }

  /**
   * Two words: the hash function and the bucket, sent as one code row * g + bucket.
   * @param {number | bigint} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const row = coins.uniform(this.pool);
    const noisy = grrDraw(bucket(rowSeed(this.key, row), index, this.g), this.g, this.low, coins);
    return coded(row * this.g + noisy, this.pool * this.g);
  }
}

/** Fast local hashing: OLH over a pool of hash functions. */
export class FLH extends Pooled {
  static kind = "flh";
  static fields = [...Pooled.fields, "buckets"];

  checkBuckets() {
    return this.checkInteger("buckets", 2, MAX_BUCKETS);
  }
}

/** Random matrix projection: the noisy sign of one row of a public random +-1 matrix (`pool` rows). */
export class RMP extends Pooled {
  static kind = "rmp";
}
