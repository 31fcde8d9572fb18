/** The mean of numbers by one bit each, and the rounding that lets a repeated answer take few values. */

import { Device } from "../base.js";
import { WORD } from "../numbers/exact.js";
import { lowCell } from "./grr.js";

/** One bit about a number on the grid 0 .. top, set with a probability that is linear in the number. */
export class OneBit extends Device {
  static kind = "onebit";
  static fields = ["epsilon", "top"];

  check() {
    /** @type {number} */
    this.top = this.checkInteger("top", 1, 2 ** 32 - 1);
    /** Words that set the bit at 0, rounded up. @type {bigint} */
    this.low = lowCell(this.odds, 2);
    /** Words that each step of the grid adds, rounded down. @type {bigint} */
    this.slope = (WORD - 2n * this.low) / BigInt(this.top);
    if (!this.slope) this.reject(`epsilon is too small to tell ${this.top} steps apart`);
  }

  get valueCount() {
    return this.top + 1;
  }

  /** One word, one bit in a byte. @param {number} value @param {import("../numbers/coins.js").Coins} coins @returns {Uint8Array} */
  privatizeOne(value, coins) {
    const index = this.index(value, this.valueCount);
    return Uint8Array.of(Number(coins.below(this.low + BigInt(index) * this.slope)));
  }
}

/**
 * Round down to a multiple of `step`, or up if value + alpha reaches the next one. With alpha uniform on
 * 0 .. step - 1, drawn once and kept, the result has mean `value` exactly. A step that divides the top of the grid
 * never leaves it.
 * @param {number} value
 * @param {number} alpha
 * @param {number} step
 * @returns {number}
 */
export function alphaRound(value, alpha, step) {
  const down = Math.floor(value / step) * step;
  return value + alpha < down + step ? down : down + step;
}
