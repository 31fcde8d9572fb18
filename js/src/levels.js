/** Levels of a tree over an ordered domain: each respondent reports the node above its value at one level. */

import { Device } from "./base.js";
import { Questions } from "./compose.js";
import { InvalidSpec } from "./errors.js";
import { WORD, tidy } from "./exact.js";

const { index, integer } = Device.prototype;

/**
 * The node above a leaf.
 * @param {number | bigint} leaf
 * @param {number | bigint} fanout
 * @param {number} height
 * @returns {bigint}
 */
function above(leaf, fanout, height) {
  let node = BigInt(leaf);
  for (; node && height; height -= 1) node /= BigInt(fanout);
  return node;
}

/** The family of levels: member i asks for the node of height `heights[i]` above the value. */
export class Tree extends Questions {
  static kind = "tree";
  static fields = ["size", "fanout", "heights", "mechanisms", "weights"];

  check() {
    super.check();
    const { heights, length } = /** @type {any} */ (this);
    /** @type {number | bigint} */
    this.size = integer.call(/** @type {any} */ (this), "size", 2, WORD);
    /** @type {number | bigint} */
    this.fanout = integer.call(/** @type {any} */ (this), "fanout", 2, WORD);
    /** @type {number[]} */
    this.heights = heights;
    if (!Array.isArray(heights) || heights.length !== length || !heights.every(this.isLevel, this)) {
      throw new InvalidSpec("tree: heights must fall, each with a mechanism over its nodes");
    }
  }

  /**
   * @param {unknown} height
   * @param {number} i
   * @returns {boolean} whether a height is below the one before and has as many nodes as its mechanism has values
   */
  isLevel(height, i) {
    if (!Number.isInteger(height) || /** @type {number} */ (height) >= this.heights[i - 1]) return false;
    const last = above(BigInt(this.size) - 1n, this.fanout, /** @type {number} */ (height));
    return last > 0n && /** @type {any} */ (this.mechanisms[i]).size === tidy(last + 1n);
  }

  /** The node above a leaf. @param {number} i @returns {(value: any) => any} */
  view(i) {
    return (value) => tidy(above(index.call(/** @type {any} */ (this), value, this.size), this.fanout, this.heights[i]));
  }
}
