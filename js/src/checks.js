/** What is asked of values that come from outside, said once. */

/** @param {unknown} value @returns {value is string} text that can be written as UTF-8 */
export const isText = (value) => typeof value === "string" && !/\p{Surrogate}/u.test(value);

/** @param {unknown} value @param {RegExp} pattern @returns {value is string} whether this is text of that form */
export const matches = (value, pattern) => typeof value === "string" && pattern.test(value);

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {unknown[]} list @returns {boolean} whether no item is there twice */
export const areDifferent = (list) => new Set(list).size === list.length;

/** @param {number[]} list @returns {boolean} whether every item is above the one before */
export const isRising = (list) => list.every((item, i) => !(item <= list[i - 1]));
