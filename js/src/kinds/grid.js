/** Products of hierarchies over up to eight ordered attributes, and numbers that are rounded to an end by a coin. */

import { Device, statedSize } from "../base.js";
import { Attributes, MAX_SIZE } from "./compose.js";
import { WORD, areIntegers, comesBefore, digitsOf, joined } from "../numbers/exact.js";
import { above } from "./levels.js";

const MAX_ATTRIBUTES = 8;
const MAX_LEVELS = 2 ** 12;

/** The family of combined levels: member i asks for the nodes of heights `heights[i]`, one per attribute. */
export class Grid extends Attributes {
  static kind = "grid";
  static fields = ["sizes", "fanouts", "heights", "mechanisms", "weights"];

  check() {
    super.check();
    /** @type {number[]} */
    this.fanouts = /** @type {any} */ (this).fanouts;
    /** @type {number[][]} */
    this.heights = /** @type {any} */ (this).heights;
    const { sizes, fanouts, heights } = this;
    /** @type {number} */
    this.size = sizes.reduce((a, b) => a * b, 1);
    const few = sizes.length <= MAX_ATTRIBUTES && this.length <= MAX_LEVELS;
    const fits = few && this.size <= MAX_SIZE && areIntegers(fanouts, 2, MAX_SIZE, sizes.length);
    if (!fits || !Array.isArray(heights) || heights.length !== this.length || !heights.every(this.isMember, this)) {
      this.reject("heights must fall, each with a mechanism over its nodes");
    }
  }

  /**
   * @param {any} heights
   * @param {number} i
   * @returns {boolean} whether heights are below those before and have as many nodes as their mechanism has values
   */
  isMember(heights, i) {
    const { sizes, fanouts, mechanisms } = this;
    if (!areIntegers(heights, 0, Infinity, sizes.length)) return false;
    if (!comesBefore(heights, this.heights[i - 1] ?? [Infinity])) return false;
    if (heights.some((/** @type {number} */ t, /** @type {number} */ a) => t && !above(sizes[a] - 1, fanouts[a], t - 1))) {
      return false;
    }
    const nodes = this.combine(sizes.map((size) => size - 1), heights) + 1;
    return nodes > 1 && mechanisms[i].valueCount === nodes;
  }

  get firstValue() {
    return 0;
  }

  /** @param {any} value */
  checkValue(value) {
    this.index(value);
  }

  /** @param {number[]} answers @param {number[]} heights @returns {number} the index of the nodes above answers */
  combine(answers, heights) {
    const { sizes, fanouts } = this;
    /** @param {number[]} values */
    const nodes = (values) => values.map((value, a) => above(value, fanouts[a], heights[a]));
    return Number(joined(nodes(answers), nodes(sizes.map((size) => size - 1)).map((last) => last + 1n)));
  }

  /** The index of the combination of answers. @param {number[]} answers @returns {number} */
  ofAnswers(answers) {
    return Number(joined(answers, this.sizes));
  }

  /** The nodes above a combination of answers. @param {number} i @returns {(value: any) => any} */
  view(i) {
    return (value) => {
      const answers = /** @type {number[]} */ (digitsOf(this.index(value), this.sizes));
      return this.combine(answers, this.heights[i]);
    };
  }
}

/** A key and a number on the grid 0 .. top, which becomes 1 with probability number/top, else 0. */
export class Rounded extends Device {
  static kind = "rounded";
  static fields = ["epsilon", "top", "inner"];

  check() {
    /** @type {number} */
    this.top = this.checkInteger("top", 1, 2 ** 32 - 1);
    /** @type {Device} */
    this.inner = /** @type {any} */ (this).inner;
    const held = this.inner instanceof Device && statedSize(this.inner);
    if (typeof held !== "number" || held % 2 || this.inner.odds > this.odds) {
      this.reject("the inner mechanism must have two values for every key, and no more epsilon");
    }
    /** @type {number} */
    this.size = (held / 2) * (this.top + 1);
    if (this.size > 2 ** 53) this.reject("keys times numbers must be at most 2^53");
  }

  /** One word to round with, then the inner ones. @param {any} value @param {import("../numbers/coins.js").Coins} coins */
  privatizeOne(value, coins) {
    const pair = this.index(value);
    const number = pair % (this.top + 1);
    const up = coins.below((BigInt(number) * WORD) / BigInt(this.top));
    return this.inner.privatizeOne(((pair - number) / (this.top + 1)) * 2 + Number(up), coins);
  }
}
