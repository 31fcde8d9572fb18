/**
 * The one public hash of Tacit: seeded, 32 bits, two multiplications per value, no linear structure.
 * The `Math.imul` twin of `tacit.device.numbers.hashing`.
 */

import { isText } from "./checks.js";
import { InvalidValue } from "../errors.js";
import { sha256, utf8 } from "./sha256.js";

/** @param {number} x @returns {number} Murmur3's finaliser, a bijection of 32-bit words */
export function mix32(x) {
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/**
 * The seeded hash of a value below 2^64.
 * @param {number} seed below 2^32
 * @param {number | bigint} value a Number must be below 2^53
 * @returns {number} below 2^32
 */
export function hash32(seed, value) {
  const [low, high] = [BigInt(value) & 0xffffffffn, BigInt(value) >> 32n].map(Number);
  const first = mix32(seed ^ high);
  const second = mix32(first + 0x9e3779b9);
  const x = Math.imul(mix32(low) ^ first, 0x85ebca6b);
  return Math.imul(x ^ (x >>> 15) ^ second, 0xc2b2ae35) >>> 0;
}

/**
 * The bucket of a value among `buckets` ranges of its hash.
 * @param {number} seed
 * @param {number | bigint} value
 * @param {number} buckets at most 2^21, so that the product is exact
 * @returns {number}
 */
export const bucket = (seed, value, buckets) => Math.floor((hash32(seed, value) * buckets) / 2 ** 32);

/** The seed of public hash function number `row` of a collection with public key `key`. */
export { hash32 as rowSeed };

/**
 * The 64-bit id of a free string: SHA-256 under a public key, so that ids of two collections differ.
 * @param {string} key
 * @param {string} text
 * @returns {bigint}
 */
export function textId(key, text) {
  const named = `tacit-text-1\0${key}\0${text.normalize("NFC")}`;
  if (!isText(named)) throw new InvalidValue("text: contains a lone surrogate");
  const hashed = sha256(utf8(named));
  return new DataView(hashed.buffer).getBigUint64(0, true);
}
