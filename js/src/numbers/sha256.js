/** SHA-256 (FIPS 180-4) and HMAC (RFC 2104): `crypto.subtle` does not exist on pages served over plain http. */

import { integerRoot } from "./exact.js";

/** @type {number[]} */
const primes = [];
for (let n = 2; primes.length < 64; n += 1) if (primes.every((p) => n % p)) primes.push(n);

/** @param {bigint} degree The first 32 bits after the point of the roots of the primes are the constants of the standard. */
const fractions = (degree) =>
  primes.map((p) => Number(BigInt.asIntN(32, integerRoot(BigInt(p) << (32n * degree), degree))));

const ROUNDS = Int32Array.from(fractions(3n));
const START = Int32Array.from(fractions(2n).slice(0, 8));

/** @param {number} x @param {number} n */
const rotate = (x, n) => (x >>> n) | (x << (32 - n));

/**
 * The message, a one bit, zeros, and the length in bits: a multiple of 64 bytes.
 * @param {Uint8Array} message
 * @returns {DataView}
 */
function padded(message) {
  const bytes = new Uint8Array(((message.length + 72) >> 6) << 6);
  bytes.set(message);
  bytes[message.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(bytes.length - 4, message.length << 3);
  return view;
}

/** The 64 words that a block is expanded to: one place for all, as a receipt may be looked up among a million hashes. */
const w = new Int32Array(64);

/**
 * Take a block of 64 bytes into the state.
 * @param {Int32Array} state
 * @param {DataView} view
 * @param {number} offset
 */
function compress(state, view, offset) {
  for (let i = 0; i < 16; i += 1) w[i] = view.getInt32(offset + 4 * i);
  for (let i = 16; i < 64; i += 1) {
    const x = w[i - 15];
    const y = w[i - 2];
    const small = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    w[i] = w[i - 16] + small + w[i - 7] + (rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10));
  }
  let [a, b, c, d] = [state[0], state[1], state[2], state[3]];
  let [e, f, g, h] = [state[4], state[5], state[6], state[7]];
  for (let i = 0; i < 64; i += 1) {
    const choice = (e & f) ^ (~e & g);
    const one = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + ROUNDS[i] + w[i]) | 0;
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
    // One by one: an array of all eight would be made anew in every step, which takes longer than the step.
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  const mixed = [a, b, c, d, e, f, g, h];
  for (let i = 0; i < 8; i += 1) state[i] += mixed[i];
}

/**
 * @param {Uint8Array} message
 * @returns {Uint8Array} the 32 bytes of SHA-256
 */
export function sha256(message) {
  const view = padded(message);
  const state = START.slice();
  for (let offset = 0; offset < view.byteLength; offset += 64) compress(state, view, offset);
  const digest = new DataView(new ArrayBuffer(32));
  for (let i = 0; i < 8; i += 1) digest.setInt32(4 * i, state[i]);
  return new Uint8Array(digest.buffer);
}

/**
 * @param {Uint8Array} key
 * @param {Uint8Array} message
 * @returns {Uint8Array} the 32 bytes of HMAC-SHA-256
 */
export function hmac(key, message) {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const inner = sha256(concat(block.map((x) => x ^ 0x36), message));
  return sha256(concat(block.map((x) => x ^ 0x5c), inner));
}

/** @param {...Uint8Array} parts @returns {Uint8Array} */
export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** @param {Uint8Array} bytes @returns {string} lower-case hexadecimal */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} text @returns {Uint8Array} */
export const utf8 = (text) => new TextEncoder().encode(text);

/** @param {string} text hexadecimal digits @returns {Uint8Array} */
export function unhex(text) {
  const bytes = new Uint8Array(text.length >> 1);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}
