/**
 * Blind RSA signatures (RFC 9474), the half of who asks for a signature: blind, finalize, verify. The twin of
 * `tacit.device.numbers.blind_rsa`, one variant: RSABSSA-SHA384-PSS-Deterministic, as RFC 9578 asks for in tokens of type
 * 0x0002. The hash is the browser's, which has it on secure pages alone. Large integers are not hardened against timing.
 */

import { randomBytes } from "../base.js";
import { insist } from "../numbers/checks.js";
import { subtle } from "./hpke.js";
import { ProtocolViolation } from "../client/refusals.js";
import { concat, hex } from "../numbers/sha256.js";

const [HASH_BYTES, SALT_BYTES] = [48, 48];
// Of a modulus, and of an exponent: work grows with their product.
const [MOST_BITS, MOST_EXPONENT_BITS] = [8192, 64];

/** @typedef {{modulus: bigint, exponent: bigint}} BlindKey the public key of a signer */
/** @typedef {{blinded: Uint8Array, inverse: bigint}} Blinding what is sent, and what removes the blinding: a secret */

/** @param {Uint8Array} bytes most significant first */
const toNumber = (bytes) => BigInt(`0x${hex(bytes) || "0"}`);

/** @param {bigint} value @param {number} width @returns {Uint8Array} so many bytes, most significant first */
function toBytes(value, width) {
  const digits = value.toString(16).padStart(2 * width, "0");
  return Uint8Array.from({ length: width }, (_, i) => Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16));
}

/** @param {bigint} value */
const bitsOf = (value) => value.toString(2).length;

/** Bytes of a signature. @param {BlindKey} key */
export const widthOf = ({ modulus }) => Math.ceil(bitsOf(modulus) / 8);

/** @param {Uint8Array} data @returns {Promise<Uint8Array>} */
const sha384 = async (data) => new Uint8Array(await subtle().digest("SHA-384", /** @type {BufferSource} */ (data)));

/**
 * Refuse keys under which no message has an encoding (RFC 8017, section 9.1.1), and those that would keep a device busy.
 * @param {BlindKey} key
 */
function checkKey({ modulus, exponent }) {
  const [least, bits] = [8 * (HASH_BYTES + SALT_BYTES + 2), bitsOf(modulus)];
  const fits = modulus > 0n && modulus % 2n && bits >= least && bits <= MOST_BITS;
  insist(fits, "blind RSA: the modulus", `positive, odd and have at least ${least} bits and at most ${MOST_BITS}`);
  const works = exponent % 2n && exponent >= 3n && exponent >> BigInt(MOST_EXPONENT_BITS) === 0n;
  insist(works, "blind RSA: the exponent", `odd, at least 3 and below 2^${MOST_EXPONENT_BITS}`);
}

/** @param {bigint} base @param {bigint} exponent @param {bigint} modulus */
function power(base, exponent, modulus) {
  let result = 1n;
  for (const bit of exponent.toString(2)) {
    result = (result * result) % modulus;
    if (bit === "1") result = (result * base) % modulus;
  }
  return result;
}

/** The inverse modulo n by Euclid's algorithm, 0 if there is none. @param {bigint} value @param {bigint} modulus */
function inverseOf(value, modulus) {
  let [left, right, a, b] = [modulus, value % modulus, 0n, 1n];
  while (right) [left, right, a, b] = [right, left % right, b, a - (left / right) * b];
  return left === 1n ? ((a % modulus) + modulus) % modulus : 0n;
}

/** MGF1 with SHA-384 (RFC 8017, appendix B.2.1), laid over data. @param {Uint8Array} data @param {Uint8Array} seed */
async function masked(data, seed) {
  const rounds = Array.from({ length: Math.ceil(data.length / HASH_BYTES) }, (_, i) =>
    sha384(concat(seed, toBytes(BigInt(i), 4))),
  );
  const mask = concat(...(await Promise.all(rounds)));
  return data.map((byte, i) => byte ^ mask[i]);
}

/** The hash that an encoding holds. @param {Uint8Array} message @param {Uint8Array} salt */
const salted = async (message, salt) => sha384(concat(new Uint8Array(8), await sha384(message), salt));

/**
 * EMSA-PSS-ENCODE with SHA-384 and MGF1 (RFC 8017, section 9.1.1), as a number of so many bits.
 * @param {Uint8Array} message
 * @param {Uint8Array} salt
 * @param {number} bits
 */
export async function encodePss(message, salt, bits) {
  const length = Math.ceil(bits / 8);
  const digest = await salted(message, salt);
  const padding = new Uint8Array(length - salt.length - HASH_BYTES - 2);
  const block = await masked(concat(padding, Uint8Array.of(1), salt), digest);
  block[0] &= 255 >> (8 * length - bits);
  return toNumber(concat(block, digest, Uint8Array.of(0xbc)));
}

/**
 * Blind an encoded message by a unit modulo n, which is drawn once and used once.
 * @param {BlindKey} key
 * @param {bigint} encoded
 * @param {bigint} factor
 * @returns {Blinding}
 */
export function blindWith(key, encoded, factor) {
  const { modulus, exponent } = key;
  const blinded = (encoded * power(factor, exponent, modulus)) % modulus;
  return { blinded: toBytes(blinded, widthOf(key)), inverse: inverseOf(factor, modulus) };
}

/** A uniform unit modulo n, by rejection. @param {bigint} modulus @param {import("../numbers/coins.js").Coins} coins */
function unit(modulus, coins) {
  const bits = bitsOf(modulus);
  for (;;) {
    const drawn = BigInt.asUintN(bits, toNumber(randomBytes(coins, Math.ceil(bits / 64))));
    if (drawn < modulus && inverseOf(drawn, modulus)) return drawn;
  }
}

/**
 * Blind a message with fresh coins (RFC 9474, section 4.2).
 * @param {BlindKey} key
 * @param {Uint8Array} message
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {Promise<Blinding>}
 */
export async function blind(key, message, coins) {
  checkKey(key);
  const encoded = await encodePss(message, randomBytes(coins, SALT_BYTES / 8), bitsOf(key.modulus) - 1);
  if (!inverseOf(encoded, key.modulus)) {
    throw new ProtocolViolation("blind RSA: the message is no unit modulo n; the key is broken, do not take part");
  }
  return blindWith(key, encoded, unit(key.modulus, coins));
}

/**
 * Whether this is the signature of the key's holder on the message (RFC 8017, section 8.1.2).
 * @param {BlindKey} key
 * @param {Uint8Array} message
 * @param {Uint8Array} signature
 */
export async function isBlindSigned(key, message, signature) {
  checkKey(key);
  const { modulus, exponent } = key;
  const [number, bits] = [toNumber(signature), bitsOf(modulus) - 1];
  if (signature.length !== widthOf(key) || number >= modulus) return false;
  const opened = power(number, exponent, modulus);
  if (opened >> BigInt(bits)) return false;
  const bytes = toBytes(opened, Math.ceil(bits / 8));
  const cut = bytes.length - HASH_BYTES - 1;
  const block = await masked(bytes.slice(0, cut), bytes.slice(cut, -1));
  // An encoding is determined by message and salt, so one that fits is the one that is made of them.
  return (await encodePss(message, block.slice(-SALT_BYTES), bits)) === opened;
}

/**
 * Remove the blinding from the signer's answer and check the signature (RFC 9474, section 4.4).
 * @param {BlindKey} key
 * @param {Uint8Array} message
 * @param {Uint8Array} answer
 * @param {Blinding} blinding
 * @returns {Promise<Uint8Array>}
 */
export async function finalize(key, message, answer, { inverse }) {
  checkKey(key);
  const width = widthOf(key);
  if (answer.length !== width) {
    throw new ProtocolViolation(`blind RSA: the signer's answer has ${answer.length} bytes, must have ${width}`);
  }
  const signature = toBytes((toNumber(answer) * inverse) % key.modulus, width);
  if (await isBlindSigned(key, message, signature)) return signature;
  throw new ProtocolViolation("blind RSA: the signer's answer is no signature on what was blinded; do not use it");
}
