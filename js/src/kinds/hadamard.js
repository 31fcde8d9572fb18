/**
 * Hadamard randomised response on the device: a few noisy entries of one column of a Hadamard matrix.
 * Column v has the entry (-1)^popcount(j AND v) in row j; the size is padded to a power of two, the order K.
 */

import { Device, coded, littleEndian } from "../base.js";
import { ABSTRACT, InvalidSpec } from "../errors.js";
import { grrDraw, lowCell } from "./grr.js";
import { concat } from "../numbers/sha256.js";

const MAX_ORDER = 2 ** 30;
const MAX_COEFFICIENTS = 6;

/** @param {number} x below 2^32 @returns {number} the number of binary digits */
export const bits = (x) => 32 - Math.clz32(x);

/** @param {number} x below 2^32 @returns {number} popcount(x) modulo 2: the sign bit of a Hadamard entry */
export function parity(x) {
  for (const shift of [16, 8, 4, 2, 1]) x ^= x >>> shift;
  return x & 1;
}

/**
 * A uniform set of `count` integers in [0, below), ascending, one word each (Floyd's sampler).
 * @param {number} count
 * @param {number} below
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {number[]}
 */
export function distinct(count, below, coins) {
  /** @type {Set<number>} */
  const drawn = new Set();
  for (let top = below - count; top < below; top += 1) {
    const t = coins.uniform(top + 1);
    drawn.add(drawn.has(t) ? top : t);
  }
  return [...drawn].sort((a, b) => a - b);
}

/**
 * `count` linearly independent rows (as bit vectors), one word each, uniform over ordered tuples.
 *
 * The r-th draw picks among the vectors outside the span of the earlier ones. The span is kept reduced, so that
 * those vectors are exactly the ones with a non-zero part off the pivot bits: draw that part and the pivot bits
 * together.
 * @param {number} count
 * @param {number} order
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {number[]}
 */
export function independent(count, order, coins) {
  const rows = [];
  /** @type {number[]} */
  let basis = [];
  for (let r = 0; r < count; r += 1) {
    const outside = (order >>> r) - 1;
    // 2^r vectors lie in the span of the r rows so far; `code` numbers all others, so no draw is ever rejected.
    const code = coins.uniform(order - (1 << r));
    let row = scatter(1 + (code % outside), basis, order);
    const inside = Math.floor(code / outside);
    basis.forEach((vector, i) => (row ^= (inside >> i) & 1 ? vector : 0));
    rows.push(row);
    basis = reduced(basis, row);
  }
  return rows;
}

/**
 * Put the bits of `code` onto the positions that are not pivots of the basis.
 * @param {number} code
 * @param {number[]} basis
 * @param {number} order
 * @returns {number}
 */
function scatter(code, basis, order) {
  const pivots = basis.reduce((sum, vector) => sum | (1 << (bits(vector) - 1)), 0);
  let row = 0;
  for (let position = 1; position < order; position *= 2) {
    if (pivots & position) continue;
    if (code & 1) row |= position;
    code >>= 1;
  }
  return row;
}

/**
 * The reduced basis of the span of `basis` and `row`, highest pivot first.
 * @param {number[]} basis
 * @param {number} row
 * @returns {number[]}
 */
function reduced(basis, row) {
  for (const vector of basis) if ((row >> (bits(vector) - 1)) & 1) row ^= vector;
  const pivot = bits(row) - 1;
  return [...basis.map((vector) => ((vector >> pivot) & 1 ? vector ^ row : vector)), row].sort((a, b) => b - a);
}

/** What the Hadamard kinds share: the padded order and randomised response on sign patterns. */
class Hadamard extends Device {
  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_ORDER);
    /** The order K of the Hadamard matrix, the number of columns padded to a power of two. @type {number} */
    this.order = 1 << bits(this.columns - 1);
    /** Number of sign patterns that randomised response runs over. @type {number} */
    this.signs = this.checkSigns();
    /** Words of each untrue sign pattern. @type {bigint} */
    this.low = lowCell(this.odds, this.signs);
  }

  /** @returns {number} how many columns of the matrix are in use: one per value */
  get columns() {
    return this.size;
  }

  /** @returns {number} how many sign patterns there are */
  checkSigns() {
    return 2;
  }

  /**
   * The noisy sign pattern of the rows at the column `index`.
   * @param {number[]} rows
   * @param {number} index
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {number}
   */
  code(rows, index, coins) {
    const pattern = rows.reduce((sum, row, i) => sum | (parity(row & index) << i), 0);
    return grrDraw(pattern, this.signs, this.low, coins);
  }
}

/** Hadamard randomised response: the noisy sign of one row; row 0 is constant and skipped unless told. */
export class HRR extends Hadamard {
  static kind = "hrr";
  static fields = ["epsilon", "size", "skip_zero"];

  check() {
    super.check();
    /** The first row that may be drawn. @type {number} */
    this.least = Number(this.choice("skip_zero", true, false));
  }

  /**
   * Two words: the row and its sign, sent as one code 2 * row + sign.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    return this.rowReport(this.least + coins.uniform(this.order - this.least), index, coins);
  }

  /**
   * One word: the noisy sign of a value in a row that was drawn before.
   * @param {number} row
   * @param {number} index
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  rowReport(row, index, coins) {
    return coded(2 * row + this.code([row], index, coins), 2 * this.order);
  }
}

/**
 * Signed Hadamard randomised response: the value is one of two halves of a node; halves count +1 and -1.
 *
 * The value is 2 * node + half. Every row is drawn, the constant one too: it carries the sum of the signs.
 */
export class HRRSigned extends Hadamard {
  static kind = "hrr_signed";
  static fields = ["epsilon", "size"];

  /** @returns {number} how many nodes there are; the last one may have a first half alone */
  get columns() {
    return Math.ceil(this.size / 2);
  }

  /**
   * Two words: the row and its signed entry, sent as one code 2 * row + sign.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const row = coins.uniform(this.order);
    const sign = parity(row & (index >> 1)) ^ (index & 1);
    return coded(2 * row + grrDraw(sign, 2, this.low, coins), 2 * this.order);
  }
}

/** Several rows per respondent, their sign pattern perturbed as one symbol. */
class ManyRows extends Hadamard {
  static fields = ["epsilon", "size", "coefficients"];

  checkSigns() {
    /** @type {number} */
    this.coefficients = this.checkInteger("coefficients", 1, Math.min(MAX_COEFFICIENTS, bits(this.order) - 1));
    return 1 << this.coefficients;
  }

  /** @param {import("../numbers/coins.js").Coins} _coins @returns {number[]} */
  rows(_coins) {
    throw new InvalidSpec(ABSTRACT);
  }

  /**
   * One word per row and one for the pattern; rows first, the pattern in one byte.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const rows = this.rows(coins);
    const pattern = this.code(rows, index, coins);
    return concat(...rows.map((row) => coded(row, this.order)), littleEndian(pattern, 1));
  }
}

/** HRR-T: t distinct rows, each learnt on its own. */
export class HRRT extends ManyRows {
  static kind = "hrr_t";

  /** @param {import("../numbers/coins.js").Coins} coins */
  rows(coins) {
    return distinct(this.coefficients, this.order - 1, coins).map((row) => 1 + row);
  }
}

/** HRR-SUBSPACE: t independent rows, from which all 2^t - 1 combinations are learnt. */
export class HRRSubspace extends ManyRows {
  static kind = "hrr_subspace";

  /** @param {import("../numbers/coins.js").Coins} coins */
  rows(coins) {
    return independent(this.coefficients, this.order, coins);
  }
}
