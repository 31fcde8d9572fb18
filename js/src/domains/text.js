/** Free text of a declared alphabet and length, whose index keeps prefixes. The twin of `tacit.device.domains.text`. */

import { isRising, isText } from "../numbers/checks.js";
import { Attribute, specText } from "./domain.js";
import { WORD, areIntegers, digitsOf, joined, tidy } from "../numbers/exact.js";
import { utf8 } from "../numbers/sha256.js";

/** @param {number} first @param {number} last */
const characters = (first, last) => String.fromCharCode(...Array.from({ length: last - first + 1 }, (_, i) => first + i));
/** @type {Record<string, string>} */
const ALPHABETS = { lower: characters(97, 122), printable: characters(32, 126), bytes: characters(1, 255) };

/** The longest texts over so many symbols whose indices fit into 64 bits. @param {number} base @returns {number} */
function longest(base) {
  let length = 1;
  while (length < 64 && BigInt(base) ** BigInt(length + 1) <= WORD) length += 1;
  return length;
}

/** Text of at most `length` symbols of an alphabet, read as a number with a digit per symbol; 0 stands for the end. */
export class Text extends Attribute {
  static kind = "text";
  static fields = ["name", "alphabet", "length"];

  check() {
    /** @type {string} */
    this.alphabet = specText(/** @type {any} */ (this).alphabet, this.who, "alphabet", 2 ** 14);
    const known = Object.hasOwn(ALPHABETS, this.alphabet);
    /** @type {string[]} */
    this.symbols = ["\0", ...(known ? ALPHABETS[this.alphabet] : this.alphabet)];
    const codes = this.symbols.map((one) => Number(one.codePointAt(0)));
    if (!known && !isRising(codes)) {
      this.reject(
        `alphabet must be one of ${Object.keys(ALPHABETS).join(", ")}, or characters in order of their code points, each once, without NUL`,
      );
    }
    if (!areIntegers([this.length], 1, 64) || this.size > WORD) {
      this.reject(
        `length must be an integer from 1 to ${longest(codes.length)}: more of its ${codes.length} symbols do not fit into 64 bits`,
      );
    }
  }

  /** @returns {number | bigint} */
  get size() {
    return tidy(BigInt(this.symbols.length) ** BigInt(this.length));
  }

  /** How many symbols there are at every place. @returns {number[]} */
  get bases() {
    return Array(this.length).fill(this.symbols.length);
  }

  /** @param {number | bigint} index */
  label(index) {
    const digits = digitsOf(index, this.bases).map(Number);
    const text =
      this.alphabet === "bytes"
        ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(digits))
        : digits.map((digit) => this.symbols[digit]).join("");
    return text.replace(/\0+$/, "");
  }

  /** @param {any} value */
  encode(value) {
    const text = isText(value) ? value.normalize("NFC") : "\0";
    const bytes = this.alphabet === "bytes";
    const digits = bytes ? [...utf8(text)] : [...text].map((one) => this.symbols.indexOf(one));
    if (digits.length > this.length || digits.some((digit) => digit < 1)) {
      this.refuse(
        `must be text of at most ${this.length} ${bytes ? "bytes of UTF-8 without NUL" : "characters of its alphabet"}`,
      );
    }
    return joined([...digits, ...this.bases.fill(0)], this.bases);
  }
}
