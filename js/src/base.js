/** What every mechanism has on the device: fields that are the wire spec, checks, and report bytes. */

import { asBudget } from "./numbers/budget.js";
import { ABSTRACT, InvalidSpec } from "./errors.js";
import { WORD } from "./numbers/exact.js";
import { Published, build, findKind } from "./nested.js";
import { concat } from "./numbers/sha256.js";

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
export const littleEndian = (value, width) =>
  Uint8Array.from({ length: width }, (_, i) => Number((BigInt(value) >> BigInt(8 * i)) & 255n));

/** @param {import("./numbers/coins.js").Coins} coins @param {number} count @returns {Uint8Array} so many words as bytes */
export const randomBytes = (coins, count) =>
  concat(...Array.from({ length: count }, () => littleEndian(coins.word(), 8)));

/**
 * One of `outcomes` codes as bytes.
 * @param {number | bigint} code
 * @param {number | bigint} outcomes
 * @returns {Uint8Array}
 */
export const coded = (code, outcomes) => littleEndian(code, widthBytes(outcomes));

/** @param {number} size @returns {Uint8Array} so many bits, packed from bit 0 */
export const bitmap = (size) => new Uint8Array(Math.ceil(size / 8));

/** @param {Uint8Array} bits packed from bit 0 @param {number} i @returns {number} 1 if bit i is set, else 0 */
export const bitAt = (bits, i) => (bits[i >> 3] >> (i & 7)) & 1;

/** @param {Uint8Array} bits packed from bit 0 @param {number} i the bit to set */
export const setBit = (bits, i) => (bits[i >> 3] |= 1 << (i & 7));

/** A mechanism as the device sees it. Its `fields`, with `kind`, are the spec; everything else is derived. */
export class Device extends Published {
  /** @type {readonly string[]} */
  static fields = ["epsilon"];

  begin() {
    /** @type {import("./numbers/budget.js").Budget} */
    this.budget = asBudget(/** @type {any} */ (this).epsilon);
    /** @type {import("./numbers/budget.js").WireBudget} */
    this.epsilon = this.budget.wire;
    if (/** @type {any} */ (this.epsilon).sampled && !(/** @type {any} */ (this.type).amplifiable)) {
      this.reject("epsilon must not be amplified");
    }
    /** floor(e^epsilon * 2^64), the bound that no realised likelihood ratio exceeds. */
    this.odds = this.budget.odds;
  }

  /** How many values there are, integers from 0 to one less; 2^64 where values are no integers. */
  get valueCount() {
    return /** @type {any} */ (this).size ?? WORD;
  }

  /** How many answers the domain of its question has; 0 where the value is a list of answers to several questions. */
  get domainSize() {
    return this.valueCount;
  }

  /** A value that every such mechanism has. @returns {any} */
  get firstValue() {
    return 0;
  }

  /** Whether a second answer costs nothing new, because the first report on a value is repeated. */
  get repeats() {
    return false;
  }

  /** Whether a report can be written as one 64-bit word, which is what shufflers pass on. */
  get fitsWord() {
    return false;
  }

  /** Refuse a value outside the domain, without showing it, before a coin is spent on it. @param {any} value */
  checkValue(value) {
    this.index(value, this.valueCount);
  }

  /**
   * A report as a batch states it: the member that was drawn, 0 where none is, and its payload. The twin of `split`.
   * @param {Uint8Array} report
   */
  unpack(report) {
    return { member: 0, payload: report };
  }

  /**
   * The noisy report on one private value.
   * @param {any} _value
   * @param {import("./numbers/coins.js").Coins} _coins
   * @returns {Uint8Array}
   */
  privatizeOne(_value, _coins) {
    throw new InvalidSpec(ABSTRACT);
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
   * @returns {number} see `checkInteger`
   */
  checkSize(high) {
    return this.checkInteger("size", 2, high);
  }
}

/**
 * How many values a mechanism states as its `size`, for those that must fit the nodes or cells of a family; undefined
 * for all others.
 * @param {Device} mechanism
 * @returns {number | bigint | undefined}
 */
export const statedSize = (mechanism) =>
  mechanism.type.fields.includes("size") ? mechanism.valueCount : undefined;

/**
 * The mechanism inside another one, which must be of one of these kinds.
 * @param {any} device
 * @param {readonly string[]} kinds
 * @returns {Device}
 */
export function innerOf(device, kinds) {
  const { inner, length } = device;
  if (inner instanceof Device && kinds.includes(inner.kind)) {
    // An amplified epsilon holds inside padding to as many elements alone; other kinds have no length.
    const { sampled } = /** @type {any} */ (inner.epsilon);
    return sampled && sampled !== length ? device.reject("inner must not be amplified") : inner;
  }
  return device.reject(`inner must be a mechanism of one of the kinds ${kinds.join(", ")}`);
}

/**
 * The device half of a wire spec, out of these kinds of mechanisms and families.
 * @param {any} spec
 * @param {ReadonlyArray<any>} kinds
 * @returns {Device}
 */
export function makeDevice(spec, kinds) {
  const made = build(spec, (part) => findKind("spec", kinds, part));
  if (made instanceof Device) return made;
  throw new InvalidSpec("spec must be that of a mechanism");
}
