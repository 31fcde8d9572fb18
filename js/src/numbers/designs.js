/**
 * Cyclic difference sets, the blocks of cyclic block response: the twin of `tacit.device.kinds.designs`
 * and `tacit.device.numbers.fields`. A device derives its design from the integers q and t of the
 * collection document alone. All numbers stay below 2^53, so plain numbers are exact.
 *
 * @typedef {object} Cyclic
 * @property {number} modulus the number of points m
 * @property {number} k the number of points of the block S
 * @property {Uint8Array} block S as a bitmap: point i is bit i % 8, least significant first, of byte i / 8
 */

import { bitmap, setBit } from "../base.js";
import { InvalidSpec } from "../errors.js";
import { digitsOf } from "./exact.js";

/** A device keeps m bits and a server transforms m floats: beyond this neither is reasonable. */
const MAX_MODULUS = 2 ** 26;

/**
 * The distinct prime factors of n >= 1, in increasing order, by trial division.
 * @param {number} n
 * @returns {number[]}
 */
export function primeFactors(n) {
  const found = [];
  for (let divisor = 2; divisor * divisor <= n; divisor += 1) {
    if (n % divisor === 0) found.push(divisor);
    while (n % divisor === 0) n /= divisor;
  }
  if (n > 1) found.push(n);
  return found;
}

/**
 * Whether n is prime, by trial division.
 * @param {number} n
 * @returns {boolean}
 */
export const isPrime = (n) => primeFactors(n)[0] === n;

/**
 * The number of one-dimensional subspaces of F_q^t.
 * @param {number} q
 * @param {number} t
 * @returns {number}
 */
function subspaces(q, t) {
  let points = 0;
  for (let i = 0; i < t; i += 1) points = points * q + 1;
  return points;
}

/**
 * The numbers of a design, or InvalidSpec if there is none.
 * @param {"singer" | "paley"} family
 * @param {number} q
 * @param {number} t 1 for a Paley design
 * @returns {Omit<Cyclic, "block">}
 */
export function shapeOf(family, q, t) {
  if (family === "paley" && t === 1 && q <= MAX_MODULUS && q % 4 === 3 && isPrime(q)) {
    return { modulus: q, k: (q - 1) / 2 };
  }
  if (family === "singer" && Number.isInteger(q) && t >= 3 && t <= 26 && primeFactors(q).length === 1) {
    const modulus = subspaces(q, t);
    if (modulus <= MAX_MODULUS) return { modulus, k: subspaces(q, t - 1) };
  }
  throw new InvalidSpec(
    "design: order must be a prime 4i + 3 (paley) or a prime power (singer) with at most 2^26 points",
  );
}

/**
 * The points of a hyperplane in the projective geometry PG(t-1, q), in cyclic order.
 *
 * With q = p^e and s the recurring sequence of the first primitive polynomial of degree e t over
 * F_p, S = { i in [0, m) : s_i = s_{i+m} = ... = s_{i+(e-1)m} = 0 }.
 * @param {number} q a prime power
 * @param {number} t at least 3
 * @returns {Cyclic}
 */
export function singer(q, t) {
  const shape = shapeOf("singer", q, t);
  const [p] = primeFactors(q);
  const e = Math.round(Math.log(q) / Math.log(p));
  return { ...shape, block: zeros(p, primitivePolynomial(p, e * t, q), e, shape.modulus) };
}

/**
 * The non-zero squares modulo a prime m = 3 mod 4: blocks of half the points, for small epsilon.
 * @param {number} m
 * @returns {Cyclic}
 */
export function paley(m) {
  const shape = shapeOf("paley", m, 1);
  const block = bitmap(m);
  let square = 0;
  for (let odd = 1; odd < m; odd += 2) {
    // Consecutive squares differ by consecutive odd numbers.
    square = (square + odd) % m;
    setBit(block, square);
  }
  return { ...shape, block };
}

/**
 * The bitmap of the points i below m at which s_i, s_{i+m}, ..., s_{i+(e-1)m} all vanish, where
 * s_{i+n} = sum_j c_j s_{i+j} mod p starts with n - 1 zeros and a one.
 * @param {number} p
 * @param {number[]} coefficients
 * @param {number} e
 * @param {number} modulus
 * @returns {Uint8Array}
 */
function zeros(p, coefficients, e, modulus) {
  const degree = coefficients.length;
  const taps = coefficients.map((_, j) => j).filter((j) => coefficients[j] > 0);
  const block = bitmap(modulus);
  const sequence = new Uint16Array(e * modulus);
  sequence[degree - 1] = 1;
  for (let i = degree; i < sequence.length; i += 1) {
    let total = 0;
    for (const j of taps) total += coefficients[j] * sequence[i - degree + j];
    sequence[i] = total % p;
  }
  for (let point = 0; point < modulus; point += 1) {
    let sum = 0;
    for (let i = point; i < sequence.length; i += modulus) sum += sequence[i];
    if (sum === 0) setBit(block, point);
  }
  return block;
}

/**
 * The first (c_0 .. c_{n-1}), in increasing order of c_0 + c_1 p + c_2 p^2 + ..., such that
 * x^n - sum c_j x^j is primitive over F_p. Integers up to p are never primitive. The power q of p
 * only splits p^n - 1 = (q - 1) m into two factors that are small enough for trial division.
 * @param {number} p
 * @param {number} degree
 * @param {number} q
 * @returns {number[]}
 */
export function primitivePolynomial(p, degree, q) {
  // Not p ** degree - 1: the power operator promises no exact result.
  const order = (p - 1) * subspaces(p, degree);
  const primes = [...primeFactors(q - 1), ...primeFactors(order / (q - 1))];
  for (let number = p + 1; ; number += 1) {
    const coefficients = digitsOf(number, new Array(degree).fill(p)).map(Number).reverse();
    if (rootHasOrder(coefficients, p, order, primes)) return coefficients;
  }
}

/**
 * Whether x has exactly this multiplicative order modulo the polynomial.
 * @param {number[]} coefficients
 * @param {number} p
 * @param {number} order
 * @param {number[]} primes
 * @returns {boolean}
 */
function rootHasOrder(coefficients, p, order, primes) {
  const isOne = (/** @type {number} */ exponent) =>
    powerOfX(exponent, coefficients, p).every((digit, i) => digit === (i === 0 ? 1 : 0));
  return coefficients[0] > 0 && isOne(order) && !primes.some((r) => isOne(order / r));
}

/**
 * x^exponent modulo the polynomial, as its n coefficients.
 * @param {number} exponent
 * @param {number[]} coefficients
 * @param {number} p
 * @returns {number[]}
 */
function powerOfX(exponent, coefficients, p) {
  const degree = coefficients.length;
  let value = [1];
  for (const bit of exponent.toString(2)) {
    // Squaring, and for a one bit a further multiplication by x, which is a shift by one place.
    const wide = new Array(2 * degree).fill(0);
    value.forEach((a, i) => value.forEach((b, j) => (wide[i + j + Number(bit)] += a * b)));
    for (let top = 2 * degree - 1; top >= degree; top -= 1) {
      const lead = wide[top] % p;
      coefficients.forEach((c, j) => (wide[top - degree + j] += lead * c));
    }
    value = wide.slice(0, degree).map((a) => a % p);
  }
  return value;
}
