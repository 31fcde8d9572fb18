/**
 * Canonical JSON and its digest: the identity of every spec.
 *
 * Sorted `[a-z_]+` keys, no fractions, integers below 2^53, other numbers as decimal text, NFC text without lone
 * surrogates, no whitespace, UTF-8. Two documents are the same collection if and only if these bytes agree.
 */

import { isObject, isText } from "./checks.js";
import { InvalidSpec } from "../errors.js";
import { hex, sha256, utf8 } from "./sha256.js";

/**
 * The canonical text of a JSON value, or InvalidSpec naming the place and the rule.
 * @param {unknown} value
 * @param {string} [where]
 * @returns {string}
 */
export function canonical(value, where = "$") {
  if (Array.isArray(value)) return `[${value.map((item, i) => canonical(item, `${where}[${i}]`)).join()}]`;
  if (isObject(value)) return object(value, where);
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new InvalidSpec(`${where}: a number must be an integer below 2^53; write all others as text`);
  }
  if (typeof value === "string" && !(isText(value) && value.normalize("NFC") === value)) {
    throw new InvalidSpec(`${where}: text must be in Unicode normal form NFC, without lone surrogates`);
  }
  if (typeof value === "bigint" || JSON.stringify(value) === undefined) {
    throw new InvalidSpec(`${where}: a value must have a form in JSON, a ${typeof value} has none`);
  }
  return JSON.stringify(value);
}

/**
 * SHA-256 of the canonical form, in hexadecimal: the identity of a spec.
 * @param {unknown} value
 * @returns {string}
 */
export const digest = (value) => hex(sha256(utf8(canonical(value))));

/** @param {object} value @param {string} where */
function object(value, where) {
  const pairs = Object.entries(value).map(([key, item]) => {
    if (!/^[a-z_]+$/.test(key)) {
      throw new InvalidSpec(`${where}: keys must be lower-case words`);
    }
    return [key, canonical(item, `${where}.${key}`)];
  });
  return `{${pairs.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => `"${key}":${item}`).join()}}`;
}
