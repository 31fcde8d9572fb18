/** Generalised randomised response on the device, and the one-word draw that most other kinds are built on. */

import { Device, coded } from "../base.js";
import { InvalidSpec } from "../errors.js";
import { WORD, ceilDiv } from "../numbers/exact.js";

/**
 * Words of each value that is not the true one. Rounded up, so that the true value's odds stay below.
 * @param {bigint} odds
 * @param {number} size
 * @returns {bigint}
 */
export function lowCell(odds, size) {
  const others = BigInt(size - 1);
  const low = ceilDiv(WORD * WORD, odds + others * WORD);
  if (WORD - others * low <= low) throw new InvalidSpec(`epsilon must be larger to choose among ${size} values`);
  return low;
}

/**
 * Keep `value` or move to another of `size` values, each of which covers exactly `low` words of one coin.
 * @param {number} value
 * @param {number} size
 * @param {bigint} low
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {number}
 */
export function grrDraw(value, size, low, coins) {
  const word = coins.word();
  if (word >= BigInt(size - 1) * low) return value;
  const other = Number(word / low);
  return other + Number(other >= value);
}

/** Generalised randomised response: the true value, or any other with equal probability. */
export class GRR extends Device {
  static kind = "grr";
  static fields = ["epsilon", "size"];

  get fitsWord() {
    return true;
  }

  check() {
    /** @type {number} */
    this.size = this.checkSize(2 ** 24);
    /** Words of each untrue value. @type {bigint} */
    this.low = lowCell(this.odds, this.size);
  }

  /** One word, one index. @param {number} value @param {import("../numbers/coins.js").Coins} coins @returns {Uint8Array} */
  privatizeOne(value, coins) {
    const index = this.index(value);
    return coded(grrDraw(index, this.size, this.low, coins), this.size);
  }
}
