/** Levels of a tree over an ordered domain: each respondent reports the node above its value at one level. */

import { statedSize } from "../base.js";
import { Questions } from "./compose.js";
import { WORD, areIntegers, tidy } from "../numbers/exact.js";

/**
 * The node above a leaf.
 * @param {number | bigint} leaf
 * @param {number | bigint} fanout
 * @param {number} height
 * @returns {bigint}
 */
export function above(leaf, fanout, height) {
  let node = BigInt(leaf);
  for (; node && height; height -= 1) node /= BigInt(fanout);
  return node;
}

/** The family of levels: member i asks for the node of height `heights[i]` above the value. */
export class Tree extends Questions {
  static kind = "tree";
  static fields = ["size", "fanout", "heights", "mechanisms", "weights"];

  check() {
    /** @type {number | bigint} */
    this.size = this.checkInteger("size", 2, WORD);
    /** @type {number | bigint} */
    this.fanout = this.checkInteger("fanout", 2, WORD);
    /** @type {number[]} */
    this.heights = /** @type {any} */ (this).heights;
    const { heights, length } = this;
    if (!areIntegers(heights, 0, Infinity, length) || !heights.every(this.isLevel, this)) {
      this.reject("heights must fall, each with a mechanism over its nodes");
    }
  }

  /**
   * @param {number} height
   * @param {number} i
   * @returns {boolean} whether a height is below the one before and has as many nodes as its mechanism has values
   */
  isLevel(height, i) {
    const last = above(BigInt(this.size) - 1n, this.fanout, height);
    return !(height >= this.heights[i - 1]) && last > 0n && statedSize(this.mechanisms[i]) === tidy(last + 1n);
  }

  get firstValue() {
    return 0;
  }

  /** @param {any} value */
  checkValue(value) {
    this.index(value);
  }

  /** The node above a leaf. @param {number} i @returns {(value: any) => any} */
  view(i) {
    return (value) => tidy(above(this.index(value), this.fanout, this.heights[i]));
  }
}
