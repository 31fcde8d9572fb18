/** Count sketches on the device: one of `rows` public hash functions, and a noisy cell of `width` under it. */

import { Device, coded } from "../base.js";
import { WORD, rootFloor } from "../numbers/exact.js";
import { grrDraw, lowCell } from "./grr.js";
import { parity } from "./hadamard.js";
import { bucket, rowSeed } from "../numbers/hashing.js";
import { concat } from "../numbers/sha256.js";
import { drawBits, symmetricThresholds } from "./unary.js";

const MAX_BITS = 2 ** 16;
const MAX_ROWS = 2 ** 20;
const MAX_CELLS = 2 ** 26;

/** A table of `rows` hash functions with `width` cells each; every report speaks of one row. */
class Sketch extends Device {
  static fields = ["epsilon", "size", "rows", "width", "key"];

  check() {
    /** @type {number | bigint} */
    this.size = this.checkSize(WORD);
    /** @type {number} */
    this.rows = this.checkInteger("rows", 1, MAX_ROWS);
    /** @type {number} */
    this.width = this.checkInteger("width", 2, this.kind === "cms" ? MAX_BITS : 2 ** 20);
    /** @type {number} */
    this.key = this.checkInteger("key", 0, 2 ** 32 - 1);
    if (this.width & (this.width - 1)) {
      this.reject("width must be a power of two");
    }
    if (this.rows * this.width > MAX_CELLS) {
      this.reject(`rows x width must be at most ${MAX_CELLS}`);
    }
  }

  /** The cell of a value in a row. @param {number} row @param {number | bigint} index @returns {number} */
  cell(row, index) {
    return bucket(rowSeed(this.key, row), index, this.width);
  }
}

/** Private count mean sketch: the one-hot cell of one row, every bit perturbed on its own. */
export class CMS extends Sketch {
  static kind = "cms";

  check() {
    super.check();
    /** Half of the budget on the one, half on the zeros. @type {[bigint, bigint]} */
    this.thresholds = symmetricThresholds(rootFloor(this.odds, 2), this.odds);
  }

  /**
   * One word for the row, then `width` noisy bits of its one-hot cell, packed from bit 0.
   * @param {number | bigint} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const row = coins.uniform(this.rows);
    const bits = drawBits(this.width, [this.cell(row, index)], this.thresholds, coins);
    return concat(coded(row, this.rows), bits);
  }
}

/** Private Hadamard count mean sketch: the noisy sign of one Hadamard coefficient of the one-hot cell. */
export class HCMS extends Sketch {
  static kind = "hcms";
  static fields = [...Sketch.fields, "skip_zero"];

  check() {
    super.check();
    /** The first coefficient that may be drawn; coefficient 0 is the same for every value. @type {number} */
    this.least = Number(this.choice("skip_zero", true, false));
    /** Words of the untrue sign. @type {bigint} */
    this.low = lowCell(this.odds, 2);
  }

  /**
   * Three words: row, coefficient and sign, sent as one code 2 * (row * width + coefficient) + sign.
   * @param {number | bigint} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const row = coins.uniform(this.rows);
    const coefficient = this.least + coins.uniform(this.width - this.least);
    const sign = grrDraw(parity(coefficient & this.cell(row, index)), 2, this.low, coins);
    return coded(2 * (row * this.width + coefficient) + sign, 2 * this.rows * this.width);
  }
}
