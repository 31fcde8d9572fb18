/**
 * Specs inside specs: rebuild a document from the inside out, without any kind knowing the others.
 *
 * @typedef {{fromSpec: (spec: Record<string, any>) => any}} Buildable
 */

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
  const parts = Object.entries(spec).map(([name, value]) => [name, build(value, find, depth + 1)]);
  return kind.fromSpec(Object.fromEntries(parts));
}

/**
 * Refuse a spec with unknown or missing fields, by name.
 * @param {string} kind
 * @param {readonly string[]} known
 * @param {Record<string, any>} spec
 */
export function checkFields(kind, known, spec) {
  const names = [...known].sort();
  for (const name of Object.keys(spec).sort()) {
    if (name !== "kind" && !names.includes(name)) {
      throw new InvalidSpec(`${kind}: unknown field '${name}', must be one of ${names.join(", ")}`);
    }
  }
  for (const name of names) {
    if (!Object.hasOwn(spec, name)) {
      throw new InvalidSpec(`${kind}: field '${name}' is missing; a published spec states every field`);
    }
  }
}
