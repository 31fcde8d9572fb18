/**
 * Domains: what a question may be answered with, and the index that stands for each answer.
 * The twin of `tacit.device.domains.domain`; messages are the same, and never show the value.
 */

import { isText } from "../numbers/checks.js";
import { ABSTRACT, InvalidSpec, InvalidValue } from "../errors.js";
import { tidy } from "../numbers/exact.js";
import { textId } from "../numbers/hashing.js";
import { Published } from "../nested.js";
import { utf8 } from "../numbers/sha256.js";

const MAX_LABELS = 2 ** 20;
const MAX_NAME_BYTES = 64;
const MAX_LABEL_BYTES = 256;
const MAX_STRING_BYTES = 2 ** 16;

/** The items of a list field. @param {unknown} value @param {string} who @param {string} what @returns {any[]} */
export function listed(value, who, what) {
  if (!Array.isArray(value)) throw new InvalidSpec(`${who}: ${what} must be a list`);
  return value;
}

/**
 * A text field in normal form NFC, or InvalidSpec with the rule.
 * @param {unknown} value
 * @param {string} who
 * @param {string} what
 * @param {number} maxBytes
 * @returns {string}
 */
export function specText(value, who, what, maxBytes) {
  const text = isText(value) ? value.normalize("NFC") : "";
  if (text === "" || utf8(text).length > maxBytes) {
    throw new InvalidSpec(`${who}: ${what} must be text of 1 to ${maxBytes} bytes in UTF-8`);
  }
  return text;
}

/** A set of answers, numbered from 0 to size - 1. Its `fields`, with `kind`, are the spec. */
export class Domain extends Published {
  /** Number of answers: a BigInt from 2^53 on. @returns {number | bigint} */
  get size() {
    throw new InvalidSpec(ABSTRACT);
  }

  /** The index of an answer: a BigInt from 2^53 on. @param {any} _value @returns {number | bigint} */
  encode(_value) {
    throw new InvalidValue(ABSTRACT);
  }

  /** The label of an index that lies in the domain. @param {number} _index @returns {any} */
  label(_index) {
    throw new InvalidSpec(ABSTRACT);
  }

  /** The label of an index. @param {number | bigint} index @returns {any} */
  decode(index) {
    if (!(index >= 0 && index < this.size)) {
      const last = BigInt(this.size) - 1n;
      throw new InvalidValue(`${this.who}: the index is outside the domain, must be from 0 to ${last}`);
    }
    return this.label(/** @type {number} */ (index));
  }

  /** All labels in order of their index. @returns {any[]} */
  allLabels() {
    if (this.size > MAX_LABELS) {
      this.reject(`${this.size} labels are too many to be listed`);
    }
    return Array.from({ length: Number(this.size) }, (_, index) => this.label(index));
  }
}

/** A domain with a name, which is what its errors begin with. */
export class Attribute extends Domain {
  begin() {
    /** @type {string} */
    this.name = specText(/** @type {any} */ (this).name, this.kind, "name", MAX_NAME_BYTES);
  }

  get who() {
    return this.name;
  }
}

/** Labels in a meaningful order. */
export class Ordered extends Attribute {
  static kind = "ordered";
  static fields = ["name", "labels"];

  check() {
    const labels = listed(/** @type {any} */ (this).labels, this.who, "labels");
    if (labels.length < 1 || labels.length > MAX_LABELS) {
      this.reject(`labels must be 1 to ${MAX_LABELS} texts`);
    }
    /** @type {string[]} */
    this.labels = labels.map((label) => specText(label, this.who, "a label", MAX_LABEL_BYTES));
    /** @type {Map<string, number>} */
    this.places = new Map(this.labels.map((label, index) => [label, index]));
    if (this.places.size < labels.length) this.reject("labels must differ from each other");
  }

  get size() {
    return this.labels.length;
  }

  /** @param {number} index */
  label(index) {
    return this.labels[index];
  }

  /** The index of text that is not a label, or a refusal. @returns {number} */
  unlisted() {
    return this.refuse("must be one of the declared labels");
  }

  /** @param {any} value */
  encode(value) {
    if (typeof value !== "string") {
      throw new InvalidValue(`${this.name}: the value must be text, one of the declared labels`);
    }
    return this.places.get(value.normalize("NFC")) ?? this.unlisted();
  }
}

/** Labels without an order; `other` names a last bucket for every text that is not listed. */
export class Categories extends Ordered {
  static kind = "categories";
  static fields = ["name", "labels", "other"];

  check() {
    super.check();
    const { other = null } = /** @type {any} */ (this);
    /** @type {string | null} */
    this.other = other === null ? other : specText(other, this.who, "other", MAX_LABEL_BYTES);
    if (this.other !== null && this.places.has(this.other)) {
      this.reject("other must differ from every label");
    }
  }

  get size() {
    return super.size + Number(this.other !== null);
  }

  /** @param {number} index */
  label(index) {
    return super.label(index) ?? /** @type {string} */ (this.other);
  }

  unlisted() {
    return this.other === null ? super.unlisted() : super.size;
  }
}

/** Yes or no. */
export class Booleans extends Attribute {
  static kind = "booleans";
  static fields = ["name"];

  get size() {
    return 2;
  }

  /** @param {number} index */
  label(index) {
    return Boolean(Number(index));
  }

  /** @param {any} value */
  encode(value) {
    const place = [false, true, 0, 1, "false", "true"].indexOf(value);
    return place < 0 ? this.refuse("must be true or false") : place % 2;
  }
}

/** Bit strings of a fixed length, first bit most significant. */
export class Bits extends Attribute {
  static kind = "bits";
  static fields = ["name", "length"];

  check() {
    /** @type {number} */
    this.length = this.checkInteger("length", 1, 64);
  }

  get size() {
    return tidy(1n << BigInt(this.length));
  }

  /** @param {number | bigint} index */
  label(index) {
    return BigInt(index).toString(2).padStart(this.length, "0");
  }

  /** @param {any} value */
  encode(value) {
    const text = typeof value === "string";
    const known = text ? ["0", "1"] : [0, 1, false, true];
    const bits = text || Array.isArray(value) ? Array.from(value, (bit) => known.indexOf(bit)) : [];
    if (bits.length !== this.length || bits.includes(-1)) this.refuse(`must be ${this.length} bits, 0 or 1 each`);
    return tidy(BigInt(`0b${bits.map((place) => place % 2).join("")}`));
  }
}

/** Free text by a 64-bit keyed hash. */
export class Strings extends Attribute {
  static kind = "strings";
  static fields = ["name", "key", "max_bytes"];

  check() {
    /** @type {string} */
    this.key = specText(/** @type {any} */ (this).key, this.who, "key", MAX_LABEL_BYTES);
    /** @type {number} */
    this.max_bytes = this.checkInteger("max_bytes", 1, MAX_STRING_BYTES);
  }

  get size() {
    return 1n << 64n;
  }

  label() {
    this.reject("an id cannot be turned back into text");
  }

  /** @param {any} value */
  encode(value) {
    if (!isText(value) || utf8(value.normalize("NFC")).length > this.max_bytes) {
      this.refuse(`must be text of at most ${this.max_bytes} bytes in UTF-8`);
    }
    return tidy(textId(this.key, value));
  }
}
