/** What every mechanism has on the device: fields that are the wire spec, checks, and report bytes. */

import { asBudget } from "./budget.js";
import { ABSTRACT, InvalidSpec, InvalidValue } from "./errors.js";
import { tidy } from "./exact.js";
import { Published } from "./nested.js";

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
export class Device extends Published {
  /** @type {readonly string[]} */
  static fields = ["epsilon"];

  /** @param {Record<string, any>} fields */
  constructor(fields) {
    super();
    for (const name of this.type.fields) /** @type {any} */ (this)[name] = fields[name];
    /** @type {import("./budget.js").Budget} */
    this.budget = asBudget(fields.epsilon);
    /** @type {import("./budget.js").WireBudget} */
    this.epsilon = this.budget.wire;
    if (/** @type {any} */ (this.epsilon).sampled && !(/** @type {any} */ (this.type).amplifiable)) {
      throw new InvalidSpec(`${this.kind}: epsilon must not be amplified`);
    }
    /** floor(e^epsilon * 2^64), the bound that no realised likelihood ratio exceeds. */
    this.odds = this.budget.odds;
    this.check();
    Object.freeze(this);
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
    throw new InvalidSpec(ABSTRACT);
  }

  /**
   * Check an integer field (digit text is accepted for large ones) and store it.
   * @param {string} name
   * @param {number | bigint} low
   * @param {number | bigint} high
   * @returns {number} a BigInt instead if it is 2^53 or more, which only sizes of hashed domains can be
   */
  integer(name, low, high) {
    const given = /** @type {any} */ (this)[name];
    const value = asInteger(typeof given === "string" && /^[0-9]{1,20}$/.test(given) ? BigInt(given) : given);
    if (value === undefined || value < low || value > high) {
      throw new InvalidSpec(`${this.kind}: ${name} must be an integer from ${low} to ${high}`);
    }
    /** @type {any} */ (this)[name] = value;
    return /** @type {number} */ (value);
  }

  /**
   * Check a field that has few values.
   * @template Value
   * @param {string} name
   * @param {...Value} allowed
   * @returns {Value}
   */
  choice(name, ...allowed) {
    const value = /** @type {any} */ (this)[name];
    if (!allowed.includes(value)) throw new InvalidSpec(`${this.kind}: ${name} must be one of ${allowed.join(", ")}`);
    return value;
  }

  /**
   * Check the domain size.
   * @param {number | bigint} high
   * @returns {number} see `integer`
   */
  checkSize(high) {
    return this.integer("size", 2, high);
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
        `${this.kind}: the value is outside the domain, must be an integer from 0 to ${BigInt(size) - 1n}`,
      );
    }
    return /** @type {number} */ (index);
  }
}
