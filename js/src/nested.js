/**
 * Specs inside specs: rebuild a document from the inside out, without any kind knowing the others.
 *
 * @typedef {{fromSpec: (spec: Record<string, any>) => any, own?: string}} Buildable `own` is the part that it builds itself
 */

import { digest } from "./canonical.js";
import { InvalidSpec } from "./errors.js";

const MAX_DEPTH = 8;

/** @param {unknown} value @returns {value is Record<string, any>} */
const isPlain = (value) => typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/**
 * The value of a wire spec; `find` gives the class of an object that carries a kind, or throws.
 * @param {unknown} spec
 * @param {(spec: Record<string, any>) => Buildable} find
 * @param {number} [depth]
 * @returns {any}
 */
export function build(spec, find, depth = 0) {
  if (depth > MAX_DEPTH) throw new InvalidSpec(`spec: specs are nested more than ${MAX_DEPTH} deep`);
  if (Array.isArray(spec)) return spec.map((item) => build(item, find, depth + 1));
  if (!isPlain(spec) || !Object.hasOwn(spec, "kind")) return spec;
  const kind = find(spec);
  const parts = Object.entries(spec).map(([name, value]) => [name, name === kind.own ? value : build(value, find, depth + 1)]);
  return kind.fromSpec(Object.fromEntries(parts));
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
  for (const name of Object.keys(given ?? {}).sort()) {
    if (!known.includes(name)) {
      throw new InvalidSpec(`${who}: unknown field '${name}', must be one of ${known.join(", ")}`);
    }
  }
  for (const name of known) {
    if (!Object.hasOwn(given ?? {}, name)) {
      throw new InvalidSpec(`${who}: field '${name}' is missing; a published spec states every field`);
    }
  }
}

/**
 * Make a value from the fields of its spec, which must be exactly the known ones, in canonical form.
 * @template {{spec: () => Record<string, any>}} Made
 * @param {{kind: string, fields: readonly string[], new (fields: Record<string, any>): Made}} type
 * @param {Record<string, any>} spec
 * @returns {Made}
 */
function rebuild(type, { kind: _, ...spec }) {
  checkFields(type.kind, [...type.fields].sort(), spec);
  const made = new type(spec);
  const stated = made.spec();
  const wrong = type.fields.find((name) => !isSame(written(spec[name]), stated[name]));
  if (wrong) throw new InvalidSpec(`${type.kind}: field '${wrong}' is not in canonical form`);
  return made;
}

/** What is published as a spec: its `fields`, with `kind`, say everything about it. */
export class Published {
  /** The name on the wire. */
  static kind = "";
  /** The names of the fields of the wire spec. @type {readonly string[]} */
  static fields = [];

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
    const pairs = this.type.fields.map((name) => {
      const value = /** @type {any} */ (this)[name];
      return [name, typeof value === "bigint" ? String(value) : written(value)];
    });
    return { kind: this.kind, ...Object.fromEntries(pairs) };
  }

  /** @returns {string} SHA-256 of the canonical spec */
  get digest() {
    return digest(this.spec());
  }

  /**
   * Rebuild from a wire spec, whose parts may be built already; unknown and missing fields are refused by name.
   * @template Made
   * @this {{new (fields: Record<string, any>): Made}}
   * @param {Record<string, any>} spec
   * @returns {Made}
   */
  static fromSpec(spec) {
    return /** @type {any} */ (rebuild(/** @type {any} */ (this), spec));
  }
}

/** A field as the document wrote it: parts that were built become their specs again. @param {any} value @returns {any} */
const written = (value) => (Array.isArray(value) ? value.map(written) : typeof value?.spec === "function" ? value.spec() : value);

/** @param {any} a @param {any} b @returns {boolean} whether two JSON values are the same */
function isSame(a, b) {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const [here, there] = [Object.keys(a), Object.keys(b)];
  return here.length === there.length && here.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]));
}
