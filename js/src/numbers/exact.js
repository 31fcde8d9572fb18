/**
 * Exact numbers: e^x by an integer series, roots, and thresholds over 2^64. No floats.
 *
 * All bounds are rounded so that a realised likelihood ratio can only be *below* the declared one.
 *
 * @typedef {[bigint, bigint]} Fraction numerator and positive denominator, not necessarily in lowest terms
 */

import { matches } from "./checks.js";

/** One coin word is uniform on [0, WORD); a probability is an integer number of words. */
export const WORD = 1n << 64n;

/** Probabilities in a spec are decimals of at most nine places. */
export const BILLION = 10n ** 9n;

const GUARD_BITS = 96n;

/** @param {bigint} a @param {bigint} b @returns {bigint} the smallest integer not below a/b, for a >= 0 < b */
export const ceilDiv = (a, b) => (a + b - 1n) / b;

/** @param {bigint} x at least 0 @returns {bigint} the number of binary digits, 0 for 0 */
export const bitLength = (x) => (x ? BigInt(x.toString(2).length) : 0n);

/**
 * An integer as this library keeps it: a Number below 2^53, a BigInt from there on.
 * @param {bigint} x
 * @returns {number | bigint}
 */
export const tidy = (x) => (x < 1n << 53n ? Number(x) : x);

/**
 * The shortest plain decimal text of the same number: "-01.50" -> "-1.5"; zero has no sign.
 * @param {string} text
 * @returns {string}
 */
export function shortestDecimal(text) {
  const [whole, decimals = ""] = text.replace("-", "").split(".");
  const rest = decimals.replace(/0+$/, "");
  const short = Number(whole) + (rest && `.${rest}`);
  return text[0] === "-" && short !== "0" ? `-${short}` : short;
}

/**
 * Decimal text times 10^places, for text with at most three digits before the point and `places` after it.
 * @param {unknown} text
 * @param {number} places
 * @returns {bigint} -1 for anything else
 */
export function scaledDecimal(text, places) {
  const decimal = matches(text, /^[0-9]{1,3}(\.[0-9]+)?$/);
  const [whole, decimals = ""] = decimal ? text.split(".") : "";
  return whole && decimals.length <= places ? BigInt(whole + decimals.padEnd(places, "0")) : -1n;
}

/**
 * The first place of an increasing list that is above what is searched, by bisection.
 * @template Item
 * @param {Item[]} list
 * @param {(item: Item) => boolean} isAbove
 * @returns {number}
 */
export function bisect(list, isAbove) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isAbove(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * floor(e^x * 2^64) for 0 <= x <= 64, up to an error below one unit that is always downwards.
 * The same integer steps as `tacit.device.numbers.exact.exp_floor`.
 * @param {Fraction} x
 * @returns {bigint}
 */
export function expFloor([numerator, denominator]) {
  const halvings = bitLength(numerator / denominator) + 1n;
  const bits = 64n + GUARD_BITS + 2n * halvings;
  const scaled = (numerator << bits) / (denominator << halvings);
  let total = 1n << bits;
  for (let k = 1n, term = total; term; k += 1n) {
    term = ((term * scaled) >> bits) / k;
    total += term;
  }
  for (let i = 0n; i < halvings; i += 1n) total = (total * total) >> bits;
  return total >> (bits - 64n);
}

/**
 * The largest integer whose power is at most the target; Newton from above decreases until it gets there.
 * @param {bigint} target at least 1
 * @param {bigint} degree
 * @returns {bigint}
 */
export function integerRoot(target, degree) {
  let guess = 1n << (bitLength(target) / degree + 1n);
  for (;;) {
    const better = ((degree - 1n) * guess + target / guess ** (degree - 1n)) / degree;
    if (better >= guess) return guess;
    guess = better;
  }
}

/**
 * floor((odds/2^64)^(1/degree) * 2^64): the odds of one of `degree` equal shares.
 * @param {bigint} odds
 * @param {number} degree
 * @returns {bigint}
 */
export const rootFloor = (odds, degree) => integerRoot(odds << BigInt(64 * (degree - 1)), BigInt(degree));

/**
 * Odds left for a mechanism whose uniform draws already favour some outcome by the factor `spread`.
 * @param {bigint} odds
 * @param {Fraction} spread
 * @returns {bigint}
 */
export const tighten = (odds, [numerator, denominator]) => (odds * denominator) / numerator;

/**
 * Largest ratio of two outcome probabilities of uniform(m) = (word * m) >> 64, multiplied over the moduli.
 * @param {...(number | bigint)} moduli
 * @returns {Fraction}
 */
export function uniformSpread(...moduli) {
  /** @type {Fraction} */
  const spread = [1n, 1n];
  for (const m of moduli.map(BigInt)) {
    spread[0] *= ceilDiv(WORD, m);
    spread[1] *= WORD / m;
  }
  return spread;
}

/** @param {Fraction} a @param {Fraction} b @returns {boolean} whether a is below b */
export const isLess = ([a, b], [c, d]) => a * d < c * b;

/**
 * @param {unknown} list
 * @param {number} low
 * @param {number} [high]
 * @param {number} [count]
 * @returns {list is number[]} whether this is a list of (so many) integers from low to high
 */
export const areIntegers = (list, low, high = Infinity, count = /** @type {any} */ (list)?.length) =>
  Array.isArray(list) && list.length === count && list.every((item) => Number.isSafeInteger(item) && item >= low && item <= high);

/**
 * The number with these digits, the first the most significant; digit i is below sizes[i].
 * @param {ArrayLike<number | bigint>} digits
 * @param {(number | bigint)[]} sizes
 * @returns {number | bigint}
 */
export const joined = (digits, sizes) =>
  tidy(sizes.reduce((/** @type {bigint} */ sum, size, i) => sum * BigInt(size) + BigInt(digits[i]), 0n));

/**
 * The digits of a number, the inverse of `joined`.
 * @param {number | bigint} number
 * @param {(number | bigint)[]} sizes
 * @returns {(number | bigint)[]}
 */
export function digitsOf(number, sizes) {
  let rest = BigInt(number);
  return sizes.reduceRight((/** @type {(number | bigint)[]} */ digits, size) => {
    const digit = tidy(rest % BigInt(size));
    rest /= BigInt(size);
    return [digit, ...digits];
  }, []);
}

/**
 * Whether a list comes before another, compared item by item.
 * @param {number[]} list
 * @param {number[]} other
 * @returns {boolean}
 */
export function comesBefore(list, other) {
  const differs = other.findIndex((item, i) => item !== list[i]);
  return differs >= 0 && !(list[differs] > other[differs]);
}
