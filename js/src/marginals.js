/** Several attributes of one respondent: a view of a few of them, or one sign of a Hadamard coefficient. */

import { answersOf, Questions } from "./compose.js";
import { InvalidSpec } from "./errors.js";
import { areIntegers } from "./exact.js";

const MAX_ATTRIBUTES = 1024;
const MAX_MEMBERS = 2 ** 20;
const MAX_CELLS = 2 ** 40;

/** What both families share: attributes with numbers of answers. */
class Attributes extends Questions {
  check() {
    /** @type {number[]} */
    this.sizes = /** @type {any} */ (this).sizes;
    if (!areIntegers(this.sizes, 2, MAX_CELLS) || !this.sizes.length || this.sizes.length > MAX_ATTRIBUTES) {
      throw new InvalidSpec(`${this.kind}: sizes must be integers from 2 on, one per attribute`);
    }
  }

  /** The checked answers to all attributes. @param {any} value @returns {number[]} */
  answers(value) {
    const given = answersOf(this.kind, value, this.sizes.length);
    return given.map((answer, i) => this.index(answer, this.sizes[i]));
  }
}

/** The family of views: member i asks for the combination of answers to the attributes `views[i]`. */
export class Views extends Attributes {
  static kind = "views";
  static fields = ["sizes", "views", "mechanisms", "weights"];

  check() {
    super.check();
    /** @type {number[][]} */
    this.views = /** @type {any} */ (this).views;
    if (!Array.isArray(this.views) || !this.views.length || !this.views.every(this.isView, this)) {
      throw new InvalidSpec("views: views must be rising lists of attributes");
    }
    const cells = [...new Set(this.views.map((_, i) => this.cells(i)))].sort((a, b) => a - b);
    const sizes = this.mechanisms.map((mechanism) => /** @type {any} */ (mechanism).size);
    const different = new Set(this.views.map(String)).size === this.views.length;
    if (!different || String(sizes) !== String(cells) || cells[cells.length - 1] > MAX_CELLS) {
      throw new InvalidSpec("views: views must differ, with one mechanism for every number of cells, rising");
    }
  }

  /** @param {unknown} view @returns {boolean} */
  isView(view) {
    return areIntegers(view, 0, this.sizes.length - 1) && view.length > 0 && view.every((a, i) => !(a <= view[i - 1]));
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

  /** @param {number} i @returns {import("./base.js").Device} */
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
    this.k = this.integer("k", 1, sizes.length);
    const sign = this.mechanisms.length === 1 && /** @type {any} */ (this.mechanisms[0]).size === 2;
    if (!sign || !areIntegers(given, 1) || given.length !== this.k) {
      throw new InvalidSpec("coefficients: needs one mechanism over two values, and k positive weights in by_order");
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
      throw new InvalidSpec(`coefficients: more than ${MAX_MEMBERS} coefficients; lower k`);
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
      let ones = 0;
      for (const [attribute, mask] of this.member(i)) {
        const masked = BigInt(mask) & BigInt(answers[attribute]);
        ones += masked.toString(2).split("1").length - 1;
      }
      return ones % 2;
    };
  }

  /** @returns {import("./base.js").Device} the mechanism of every sign */
  mechanism() {
    return this.mechanisms[0];
  }
}
