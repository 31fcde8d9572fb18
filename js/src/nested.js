/**
 * Specs inside specs: rebuild a document from the inside out, without any kind knowing the others.
 *
 * @typedef {object} Buildable
 * @property {(spec: Record<string, any>) => any} fromSpec
 * @property {string} [own] the part that it builds itself, by `adopt`
 * @property {(spec: any, find: (spec: any) => Buildable) => any} [adopt]
 */

import { canonical, digest } from "./numbers/canonical.js";
import { isObject, matches } from "./numbers/checks.js";
import { InvalidSpec, InvalidValue } from "./errors.js";
import { tidy } from "./numbers/exact.js";

const MAX_DEPTH = 8;

/**
 * The value of a wire spec; `find` gives the class of an object that carries a kind, or throws.
 * @param {any} spec
 * @param {(spec: Record<string, any>) => Buildable} find
 * @param {number} [depth]
 * @returns {any}
 */
export function build(spec, find, depth = 0) {
  if (depth > MAX_DEPTH) throw new InvalidSpec(`spec: specs are nested more than ${MAX_DEPTH} deep`);
  if (Array.isArray(spec)) return spec.map((item) => build(item, find, depth + 1));
  // Not by `spec.constructor`: a document may have a field of that name.
  if (!isObject(spec) || spec instanceof Published || !Object.hasOwn(spec, "kind")) return spec;
  const kind = find(spec);
  const part = (/** @type {string} */ name, /** @type {any} */ value) =>
    name === kind.own ? kind.adopt?.(value, find) : build(value, find, depth + 1);
  return kind.fromSpec(Object.fromEntries(Object.entries(spec).map(([name, value]) => [name, part(name, value)])));
}

/**
 * The class of a spec, or InvalidSpec naming what is known.
 * @template {{kind: string}} Kind
 * @param {string} who
 * @param {ReadonlyArray<Kind>} kinds
 * @param {any} spec
 * @returns {Kind}
 */
export function findKind(who, kinds, spec) {
  const kind = kinds.find((one) => one.kind === spec?.kind);
  if (kind) return kind;
  throw new InvalidSpec(`${who}: kind is '${String(spec?.kind).slice(0, 40)}', must be one of ${kindsOf(kinds)}`);
}

/** The names of kinds, for a message. @param {ReadonlyArray<{kind: string}>} kinds @returns {string} */
export const kindsOf = (kinds) => kinds.map(({ kind }) => kind).join(", ");

/**
 * Refuse an object whose fields are not exactly the known ones.
 * @param {string} who
 * @param {readonly string[]} known in order
 * @param {any} given
 */
export function checkFields(who, known, given) {
  if (!isObject(given)) throw new InvalidSpec(`${who} must be an object with the fields ${known.join(", ")}`);
  const stated = Object.keys(given);
  const odd = stated.sort().find((name) => !known.includes(name));
  if (odd !== undefined) throw new InvalidSpec(`${who}: unknown field '${odd}', must be one of ${known.join(", ")}`);
  const missing = known.find((name) => !stated.includes(name));
  if (missing) throw new InvalidSpec(`${who}: field '${missing}' is missing; a published spec states every field`);
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

/** What is published as a spec: its `fields`, with `kind`, say everything about it. */
export class Published {
  /** The name on the wire. */
  static kind = "";
  /** The names of the fields of the wire spec. @type {readonly string[]} */
  static fields = [];

  /** @param {Record<string, any>} fields */
  constructor(fields) {
    for (const name of this.type.fields) /** @type {any} */ (this)[name] = fields[name];
    this.begin();
    this.check();
    Object.freeze(this);
  }

  /** Check the fields that all of a sort have in common. */
  begin() {}

  /** Refuse fields that cannot exist, bring the others into their canonical form, and derive what follows from them. */
  check() {}

  /** What errors begin with. */
  get who() {
    return this.kind;
  }

  /** @returns {typeof Published} */
  get type() {
    return /** @type {any} */ (this.constructor);
  }

  /** @returns {string} */
  get kind() {
    return this.type.kind;
  }

  /** @returns {Record<string, any>} the wire spec: kind and fields, with integers from 2^53 on as text */
  spec() {
    const pairs = this.type.fields.map((name) => [name, written(/** @type {any} */ (this)[name])]);
    return { kind: this.kind, ...Object.fromEntries(pairs) };
  }

  /** @returns {string} SHA-256 of the canonical spec */
  get digest() {
    return digest(this.spec());
  }

  /**
   * Check an integer field (digit text is accepted where it may exceed 2^53) and store it.
   * @param {string} name
   * @param {number | bigint} low
   * @param {number | bigint} high
   * @returns {number} a BigInt instead if it is 2^53 or more, which only sizes of hashed domains can be
   */
  checkInteger(name, low, high) {
    const given = /** @type {any} */ (this)[name];
    const digits = high > Number.MAX_SAFE_INTEGER && matches(given, /^[0-9]{1,20}$/);
    const value = asInteger(digits ? BigInt(given) : given);
    if (value === undefined || value < low || value > high) {
      throw new InvalidSpec(`${this.who}: ${name} must be an integer from ${low} to ${high}`);
    }
    /** @type {any} */ (this)[name] = value;
    return /** @type {number} */ (value);
  }

  /** Refuse the spec. @param {string} rule @returns {never} */
  reject(rule) {
    throw new InvalidSpec(`${this.who}: ${rule}`);
  }

  /** Refuse a private value, which the message never shows. @param {string} rule @returns {never} */
  refuse(rule) {
    throw new InvalidValue(`${this.who}: the value is outside the domain, ${rule}`);
  }

  /**
   * A private value as an index below `size`.
   * @param {unknown} value
   * @param {number | bigint} [size]
   * @returns {number} a BigInt instead if it is 2^53 or more
   */
  index(value, size = /** @type {any} */ (this).size) {
    const index = asInteger(value) ?? -1;
    if (index < 0 || index >= size) this.refuse(`must be an integer from 0 to ${BigInt(size) - 1n}`);
    return /** @type {number} */ (index);
  }

  /**
   * Rebuild from a wire spec, whose parts may be built already. Its fields must be exactly the known ones, in canonical
   * form; others are refused by name.
   * @template Made
   * @this {{new (fields: Record<string, any>): Made}}
   * @param {Record<string, any>} spec
   * @returns {Made}
   */
  static fromSpec({ kind: _, ...spec }) {
    const { kind, fields } = /** @type {any} */ (this);
    checkFields(kind, [...fields].sort(), spec);
    /** @type {any} */
    const made = new this(spec);
    // What was taken as it is, parts that were built among it, needs no second look.
    const changed = fields.filter((/** @type {string} */ name) => spec[name] !== made[name]);
    const wrong = changed.find((/** @type {string} */ name) => !isSame(written(spec[name]), written(made[name])));
    if (wrong) throw new InvalidSpec(`${kind}: field '${wrong}' is not in canonical form`);
    return made;
  }
}

/** A field as a document writes it: parts that were built become their specs again. @param {any} value @returns {any} */
function written(value) {
  if (Array.isArray(value)) return value.map(written);
  return typeof value === "bigint" ? String(value) : value instanceof Published ? value.spec() : value;
}

/** @param {any} a @param {any} b @returns {boolean} whether two values have one canonical form; some have none */
function isSame(a, b) {
  try {
    return canonical(a) === canonical(b);
  } catch {
    return false;
  }
}
