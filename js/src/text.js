/** Free text of a declared alphabet and length, whose index keeps prefixes. The twin of `tacit.device.text`. */

import { Attribute, bounded, isText, specText } from "./domain.js";
import { InvalidSpec } from "./errors.js";
import { WORD, tidy } from "./exact.js";
import { utf8 } from "./sha256.js";

/** @param {number} first @param {number} last */
const characters = (first, last) => String.fromCharCode(...Array.from({ length: last - first + 1 }, (_, i) => first + i));
/** @type {Record<string, string>} */
const ALPHABETS = { lower: characters(97, 122), printable: characters(32, 126), bytes: characters(1, 255) };

/** Text of at most `length` symbols of an alphabet, read as a number with a digit per symbol; 0 stands for the end. */
export class Text extends Attribute {
  static kind = "text";
  static fields = ["name", "alphabet", "length"];

  check() {
    super.check();
    /** @type {string} */
    this.alphabet = specText(/** @type {any} */ (this).alphabet, this.who, "alphabet", 2 ** 14);
    const known = Object.hasOwn(ALPHABETS, this.alphabet);
    /** @type {string[]} */
    this.symbols = ["\0", ...(known ? ALPHABETS[this.alphabet] : this.alphabet)];
    if (!known && this.symbols.some((one, i, all) => i && Number(one.codePointAt(0)) <= Number(all[i - 1].codePointAt(0)))) {
      const rule = "characters in order of their code points, each once, without NUL";
      throw new InvalidSpec(`${this.name}: alphabet must be one of ${Object.keys(ALPHABETS).join(", ")}, or ${rule}`);
    }
    let fits = 1;
    while (fits < 64 && BigInt(this.symbols.length) ** BigInt(fits + 1) <= WORD) fits += 1;
    const rule = `with ${this.symbols.length} symbols, at most ${fits} of them fit into 64 bits`;
    /** @type {number} */
    this.length = bounded(/** @type {any} */ (this).length, `${this.name}: ${rule}`, "length", 1, fits);
  }

  get size() {
    return tidy(BigInt(this.symbols.length) ** BigInt(this.length));
  }

  /** @param {number | bigint} index */
  label(index) {
    const [all, base] = [[], BigInt(this.symbols.length)];
    for (let rest = BigInt(index), i = 0; i < this.length; i += 1, rest /= base) all.unshift(Number(rest % base));
    const bytes = this.alphabet === "bytes";
    const text = bytes ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(all)) : all.map((i) => this.symbols[i]).join("");
    return text.replace(/\0+$/, "");
  }

  /** @param {any} value */
  encode(value) {
    const text = isText(value) ? value.normalize("NFC") : "\0";
    const bytes = this.alphabet === "bytes";
    const digits = bytes ? [...utf8(text)] : [...text].map((one) => this.symbols.indexOf(one));
    if (digits.length > this.length || digits.some((digit) => digit < 1)) {
      const unit = bytes ? "bytes of UTF-8 without NUL" : "characters of its alphabet";
      this.refuse(`must be text of at most ${this.length} ${unit}`);
    }
    const base = BigInt(this.symbols.length);
    const index = digits.reduce((sum, digit) => sum * base + BigInt(digit), 0n);
    return tidy(index * base ** BigInt(this.length - digits.length));
  }
}
