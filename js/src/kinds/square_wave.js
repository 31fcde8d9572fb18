/** Square wave on the device: a number is reported near itself more likely than far away. */

import { Device, coded } from "../base.js";
import { WORD, ceilDiv } from "../numbers/exact.js";

/** A number in 0 .. size - 1, reported as one of the `width` outputs around it or as any other one. */
export class SquareWave extends Device {
  static kind = "sw";
  static fields = ["epsilon", "size", "width"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(2 ** 16);
    /** @type {number} */
    this.width = this.checkInteger("width", 1, 2 * this.size + 1);
    if (this.width % 2 === 0) this.reject("width must be odd");
    /** Number of different reports. @type {number} */
    this.outputs = this.size + this.width - 1;
    const [others, near] = [BigInt(this.size - 1), BigInt(this.width)];
    const low = ceilDiv(WORD * WORD, near * this.odds + others * WORD);
    const fits = ceilDiv(WORD - others * low, near) * WORD <= this.odds * low;
    /** Words of every far output. @type {bigint} */
    this.low = fits ? low : low + 1n;
    const left = WORD - others * this.low;
    /** Words of every near output but the last, which takes what rounding has left. @type {bigint} */
    this.high = ceilDiv(left, near);
    const last = left - (near - 1n) * this.high;
    if (this.high <= this.low || last <= this.low) this.reject("epsilon must be larger for so many outputs");
  }

  /**
   * One word; far outputs are numbered without the near ones, so those beyond them move up by the window.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const word = coins.word();
    const far = BigInt(this.size - 1) * this.low;
    if (word >= far) return coded(index + Number((word - far) / this.high), this.outputs);
    const other = Number(word / this.low);
    return coded(other >= index ? other + this.width : other, this.outputs);
  }
}
