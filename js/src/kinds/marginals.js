/** Several attributes of one respondent: a view of a few of them, or one sign of a Hadamard coefficient. */

import { statedSize } from "../base.js";
import { areDifferent, isRising } from "../numbers/checks.js";
import { Attributes, MAX_MEMBERS, MAX_SIZE } from "./compose.js";
import { areIntegers } from "../numbers/exact.js";

const MAX_VIEWS = 2 ** 16;

/** The family of views: member i asks for the combination of answers to the attributes `views[i]`. */
export class Views extends Attributes {
  static kind = "views";
  static fields = ["sizes", "views", "mechanisms", "weights"];

  check() {
    super.check();
    /** @type {number[][]} */
    this.views = /** @type {any} */ (this).views;
    if (!Array.isArray(this.views) || !this.views.length || this.views.length > MAX_VIEWS || !this.views.every(this.isView, this)) {
      this.reject("views must be rising lists of attributes");
    }
    const cells = [...new Set(this.views.map((_, i) => this.cells(i)))].sort((a, b) => a - b);
    const sizes = this.mechanisms.map(statedSize);
    if (!areDifferent(this.views.map(String)) || String(sizes) !== String(cells) || cells[cells.length - 1] > MAX_SIZE) {
      this.reject("views must differ, with one mechanism for every number of cells, rising");
    }
  }

  /** @param {unknown} view @returns {boolean} */
  isView(view) {
    return areIntegers(view, 0, this.sizes.length - 1) && view.length > 0 && isRising(view);
  }

  get length() {
    return this.views.length;
  }

  /** Number of cells of a view. @param {number} i @returns {number} */
  cells(i) {
    return this.views[i].reduce((cells, attribute) => cells * this.sizes[attribute], 1);
  }

  /** The cell of a list of answers. @param {number} i @returns {(value: any) => number} */
  view(i) {
    return (value) => {
      const answers = this.answers(value);
      return this.views[i].reduce((cell, attribute) => cell * this.sizes[attribute] + answers[attribute], 0);
    };
  }

  /** @param {number} i @returns {import("../base.js").Device} */
  mechanism(i) {
    const cells = this.cells(i);
    return /** @type {any} */ (this.mechanisms).find((/** @type {any} */ { size }) => size === cells);
  }
}

/** The family of Hadamard coefficients of one to k attributes, ranked; `by_order[j - 1]` weighs those of j. */
export class Coefficients extends Attributes {
  static kind = "coefficients";
  static fields = ["sizes", "k", "mechanisms", "by_order"];

  check() {
    /** @type {number[]} */
    this.by_order = /** @type {any} */ (this).by_order;
    super.check();
    const { sizes, by_order: given } = this;
    /** @type {number} */
    this.k = this.checkInteger("k", 1, sizes.length);
    const sign = this.mechanisms.length === 1 && statedSize(this.mechanisms[0]) === 2;
    if (!sign || !areIntegers(given, 1, Infinity, this.k)) {
      this.reject("needs one mechanism over two values, and k positive weights in by_order");
    }
    /** Non-zero masks of every attribute. @type {number[]} */
    this.masks = sizes.map((size) => 2 ** (size - 1).toString(2).length - 1);
    /** Coefficients of j attributes among those from a on. @type {number[][]} */
    this.ways = this.masks.reduceRight(
      (ways, masks) => [[1, ...given.map((_, j) => ways[0][j + 1] + masks * ways[0][j])], ...ways],
      [[1, ...given.map(() => 0)]],
    );
    const orders = this.ways[0].slice(1);
    if (orders.reduce((sum, order) => sum + order, 0) > MAX_MEMBERS) {
      this.reject(`more than ${MAX_MEMBERS} coefficients; lower k`);
    }
    /** The weight of every coefficient. @type {number[]} */
    this.weights = orders.flatMap((count, j) => Array(count).fill(given[j]));
  }

  get length() {
    return this.weights.length;
  }

  /** The coefficient of a rank: attributes with masks on their bits. @param {number} i @returns {[number, number][]} */
  member(i) {
    let [left, rest] = [1, i];
    for (; rest >= this.ways[0][left]; left += 1) rest -= this.ways[0][left];
    /** @type {[number, number][]} */
    const found = [];
    for (let a = 0; left; a += 1) {
      const each = this.ways[a + 1][left - 1];
      if (rest < this.masks[a] * each) {
        found.push([a, 1 + Math.floor(rest / each)]);
        rest %= each;
        left -= 1;
      } else {
        rest -= this.masks[a] * each;
      }
    }
    return found;
  }

  /** The parity of the masked bits of the answers. @param {number} i @returns {(value: any) => number} */
  view(i) {
    return (value) => {
      const answers = this.answers(value);
      const masked = this.member(i).map(([attribute, mask]) => BigInt(mask) & BigInt(answers[attribute]));
      const ones = masked.map((bits) => bits.toString(2)).join("").split("1").length - 1;
      return ones % 2;
    };
  }

  /** @returns {import("../base.js").Device} the mechanism of every sign */
  mechanism() {
    return this.mechanisms[0];
  }
}
