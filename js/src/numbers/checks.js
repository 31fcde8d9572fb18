/** What is asked of values that come from outside, said once. */

import { InvalidSpec } from "../errors.js";

/** @param {unknown} holds @param {string} where @param {string} rule */
export function insist(holds, where, rule) {
  if (!holds) throw new InvalidSpec(`${where} must be ${rule}`);
}

/** @param {unknown} value @returns {value is string} text that can be written as UTF-8 */
export const isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);

/** @param {unknown} value @param {RegExp} pattern @returns {value is string} whether this is text of that form */
export const matches = (value, pattern) => typeof value === "string" && pattern.test(value);

/** @param {unknown} value @param {number} most @returns {boolean} whether this is text of 1 to so many characters */
export const spans = (value, most) => matches(value, /[^]/) && [...value].length <= most;

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {unknown[]} list @returns {boolean} whether no item is there twice */
export const areDifferent = (list) => new Set(list).size === list.length;

/** @param {any[]} list @returns {boolean} whether every item is above the one before */
export const isRising = (list) => list.every((item, i) => !(item <= list[i - 1]));
