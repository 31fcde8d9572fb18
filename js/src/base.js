/** What every mechanism has on the device: fields that are the wire spec, checks, and report bytes. */

import { asBudget } from "./budget.js";
import { digest } from "./canonical.js";
import { InvalidSpec, InvalidValue } from "./errors.js";
import { tidy } from "./exact.js";

/**
 * Bytes of the smallest little-endian integer (1, 2, 4 or 8 bytes) that can hold `outcomes` codes.
 * @param {number | bigint} outcomes
 * @returns {number}
 */
export const widthBytes = (outcomes) =>
  /** @type {number} */ ([1, 2, 4, 8].find((width) => outcomes <= 1n << BigInt(8 * width)));

/**
 * An integer as little-endian bytes.
 * @param {number | bigint} value
 * @param {number} width
 * @returns {Uint8Array}
 */
export function littleEndian(value, width) {
  const bytes = new Uint8Array(width);
  for (let i = 0, rest = BigInt(value); i < width; i += 1, rest >>= 8n) bytes[i] = Number(rest & 255n);
  return bytes;
}

/** @param {any} value @returns {any} a field as it is written in a spec: integers from 2^53 on are text */
function toJson(value) {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Device) return value.spec();
  return Array.isArray(value) ? value.map(toJson) : value;
}

/**
 * An integer of a spec or a private value as the library keeps it (see `tidy`), or undefined.
 * @param {unknown} value
 * @returns {number | bigint | undefined}
 */
function asInteger(value) {
  if (typeof value === "bigint") return tidy(value);
  return Number.isSafeInteger(value) ? /** @type {number} */ (value) : undefined;
}

/** A mechanism as the device sees it. Its `fields`, with `kind`, are the spec; everything else is derived. */
export class Device {
  /** The name of the mechanism on the wire. */
  static kind = "";
  /** The names of the fields of the wire spec. */
  static fields = ["epsilon"];

  /** @param {Record<string, any>} fields */
  constructor(fields) {
    for (const name of this.type.fields) /** @type {any} */ (this)[name] = fields[name];
    /** @type {import("./budget.js").Budget} */
    this.budget = asBudget(fields.epsilon);
    /** @type {import("./budget.js").WireBudget} */
    this.epsilon = this.budget.wire;
    /** floor(e^epsilon * 2^64), the bound that no realised likelihood ratio exceeds. */
    this.odds = this.budget.odds;
    this.check();
    Object.freeze(this);
  }

  /** @returns {typeof Device} */
  get type() {
    return /** @type {any} */ (this.constructor);
  }

  /** @returns {string} */
  get kind() {
    return this.type.kind;
  }

  /** Refuse fields that cannot exist, and derive exact integers from the others. */
  check() {}

  /**
   * The noisy report on one private value.
   * @param {any} _value
   * @param {import("./coins.js").Coins} _coins
   * @returns {Uint8Array}
   */
  privatizeOne(_value, _coins) {
    throw new InvalidSpec(`${this.kind}: this kind draws nothing`);
  }

  /** @returns {Record<string, any>} the wire spec: kind and fields, with numbers from 2^53 on as text */
  spec() {
    const pairs = this.type.fields.map((name) => [name, toJson(/** @type {any} */ (this)[name])]);
    return { kind: this.kind, ...Object.fromEntries(pairs) };
  }

  /** @returns {string} SHA-256 of the canonical spec */
  get digest() {
    return digest(this.spec());
  }

  /**
   * Rebuild from a wire spec; unknown and missing fields are refused by name.
   * @param {Record<string, any>} spec
   * @returns {Device}
   */
  static fromSpec(spec) {
    for (const name of Object.keys(spec)) {
      if (name !== "kind" && !this.fields.includes(name)) {
        const known = [...this.fields].sort().join(", ");
        throw new InvalidSpec(`${this.kind}: unknown field '${name}', must be one of ${known}`);
      }
    }
    for (const name of this.fields) {
      if (!Object.hasOwn(spec, name)) {
        throw new InvalidSpec(`${this.kind}: field '${name}' is missing; a published spec states every field`);
      }
    }
    const made = new this(spec);
    const written = made.spec();
    for (const name of this.fields.filter((field) => digest({ v: written[field] }) !== digest({ v: spec[field] }))) {
      throw new InvalidSpec(`${this.kind}: field '${name}' is not in canonical form`);
    }
    return made;
  }

  /**
   * Check an integer field (digit text is accepted for large ones) and store it.
   * @param {string} name
   * @param {number | bigint} low
   * @param {number | bigint} high
   * @param {string} [hint]
   * @returns {number} a BigInt instead if it is 2^53 or more, which only sizes of hashed domains can be
   */
  integer(name, low, high, hint = "") {
    const given = /** @type {any} */ (this)[name];
    const value = asInteger(typeof given === "string" && /^[0-9]{1,20}$/.test(given) ? BigInt(given) : given);
    const because = hint && `; ${hint}`;
    if (value === undefined) throw new InvalidSpec(`${this.kind}: ${name} must be an integer from ${low} to ${high}`);
    if (value < low) throw new InvalidSpec(`${this.kind}: ${name} is ${value}, must be at least ${low}${because}`);
    if (value > high) throw new InvalidSpec(`${this.kind}: ${name} is ${value}, must be at most ${high}${because}`);
    /** @type {any} */ (this)[name] = value;
    return /** @type {number} */ (value);
  }

  /**
   * Check the domain size.
   * @param {number | bigint} high
   * @param {string} [hint]
   * @returns {number} see `integer`
   */
  checkSize(high, hint = "") {
    const { size } = /** @type {any} */ (this);
    const few = size === 0 || size === 1;
    return this.integer("size", 2, high, few ? "a one-value domain carries no information, drop this attribute" : hint);
  }

  /**
   * A private value as an index below `size`; the message never shows the value.
   * @param {unknown} value
   * @param {number | bigint} size
   * @returns {number} a BigInt instead if it is 2^53 or more
   */
  index(value, size) {
    const index = asInteger(value) ?? -1;
    if (index < 0 || index >= size) {
      throw new InvalidValue(
        `${this.kind}: the value is outside the domain, must be an integer from 0 to ${BigInt(size) - 1n}; ` +
          "encode answers with the domain of the collection",
      );
    }
    return /** @type {number} */ (index);
  }
}
