/**
 * Hybrid public key encryption (RFC 9180), base mode: seal bytes for the holder of an X25519 key.
 * The twin of `tacit.shuffle.crypto.hpke`, one suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. Curve and
 * cipher are the browser's, which has them on secure pages alone; a device never opens what was sealed so.
 */

import { randomBytes } from "../base.js";
import { CannotSeal, ProtocolViolation } from "../client/refusals.js";
import { concat, hmac, unhex, utf8 } from "../numbers/sha256.js";

/** RFC 8410: the bytes in front of a private X25519 key, for want of a raw form. */
const PRIVATE_PREFIX = unhex("302e020100300506032b656e04220420");
/** What a private key is multiplied with to give its public half (RFC 7748, section 4.1). */
const BASE_POINT = Uint8Array.of(9, ...new Uint8Array(31));
const NOTHING = new Uint8Array();

/** The browser's cryptography. @returns {SubtleCrypto} */
export function subtle() {
  const found = globalThis.crypto?.subtle;
  if (found) return found;
  throw new CannotSeal(globalThis.isSecureContext === false ? "insecure" : "browser");
}

/** Two bytes, most significant first. @param {number} value */
export const twoBytes = (value) => Uint8Array.of(value >> 8, value & 255);

/** What follows the key exchange in the names of the suite: HKDF-SHA256 and AES-128-GCM. */
export const KDF_AND_AEAD = concat(twoBytes(1), twoBytes(1));
/** DHKEM(X25519, HKDF-SHA256). */
export const KEM = twoBytes(0x20);
const KEM_SUITE = concat(utf8("KEM"), KEM);
const SUITE = concat(utf8("HPKE"), KEM, KDF_AND_AEAD);

/** HKDF-Extract with SHA-256 (RFC 5869). */
export const extract = hmac;

/**
 * HKDF-Expand with SHA-256 (RFC 5869).
 * @param {Uint8Array} secret
 * @param {Uint8Array} info
 * @param {number} length
 * @returns {Uint8Array}
 */
export function expand(secret, info, length) {
  let [block, blocks] = [NOTHING, NOTHING];
  for (let i = 1; blocks.length < length; i += 1) {
    block = hmac(secret, concat(block, info, Uint8Array.of(i)));
    blocks = concat(blocks, block);
  }
  return blocks.slice(0, length);
}

/** @param {Uint8Array} suite @param {Uint8Array} salt @param {string} label @param {Uint8Array} material */
const labelledExtract = (suite, salt, label, material) =>
  extract(salt, concat(utf8("HPKE-v1"), suite, utf8(label), material));

/** @param {Uint8Array} suite @param {Uint8Array} secret @param {string} label @param {Uint8Array} info @param {number} length */
const labelledExpand = (suite, secret, label, info, length) =>
  expand(secret, concat(twoBytes(length), utf8("HPKE-v1"), suite, utf8(label), info), length);

/** What two private keys have in common. @param {CryptoKey} own @param {Uint8Array} other public @returns {Promise<Uint8Array>} */
export async function exchange(own, other) {
  try {
    const key = await subtle().importKey("raw", other, "X25519", false, []);
    // Points of low order, whose shared secret everybody would know, are refused by the browser.
    return new Uint8Array(await subtle().deriveBits({ name: "X25519", public: key }, own, 256));
  } catch {
    throw new ProtocolViolation("sealing: a public key is not 32 bytes of a usable X25519 key; take no part");
  }
}

/**
 * What both sides share after the key exchange (section 4.1).
 * @param {Uint8Array} exchanged
 * @param {Uint8Array} enc
 * @param {Uint8Array} publicKey
 */
export function sharedSecret(exchanged, enc, publicKey) {
  const secret = labelledExtract(KEM_SUITE, NOTHING, "eae_prk", exchanged);
  return labelledExpand(KEM_SUITE, secret, "shared_secret", concat(enc, publicKey), 32);
}

/**
 * Encrypt by AES-128-GCM; the tag follows the ciphertext.
 * @param {Uint8Array} key
 * @param {Uint8Array} iv
 * @param {Uint8Array} plaintext
 * @param {Uint8Array} additionalData
 * @returns {Promise<Uint8Array>}
 */
async function encrypt(key, iv, plaintext, additionalData) {
  const cipher = await subtle().importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  return new Uint8Array(await subtle().encrypt({ name: "AES-GCM", iv, additionalData }, cipher, plaintext));
}

/** The sender's side: seals messages in order. `enc` travels in front of them. */
export class SealingContext {
  /** A nonce is never used twice: this number only grows. */
  #sequence = 0;

  /** @param {Uint8Array} shared @param {Uint8Array} info @param {Uint8Array} enc */
  constructor(shared, info, enc) {
    const hash = (/** @type {string} */ label, /** @type {Uint8Array} */ of) => labelledExtract(SUITE, NOTHING, label, of);
    const context = concat(Uint8Array.of(0), hash("psk_id_hash", NOTHING), hash("info_hash", info));
    const secret = labelledExtract(SUITE, shared, "secret", NOTHING);
    this.enc = enc;
    this.key = labelledExpand(SUITE, secret, "key", context, 16);
    this.baseNonce = labelledExpand(SUITE, secret, "base_nonce", context, 12);
    this.exporterSecret = labelledExpand(SUITE, secret, "exp", context, 32);
  }

  /**
   * Exchange keys with the holder of a public key.
   * @param {Uint8Array} publicKey
   * @param {Uint8Array} info
   * @param {Uint8Array} ephemeral 32 random bytes that are used once
   */
  static async open(publicKey, info, ephemeral) {
    const own = await subtle().importKey("pkcs8", concat(PRIVATE_PREFIX, ephemeral), "X25519", false, ["deriveBits"]);
    const enc = await exchange(own, BASE_POINT);
    return new SealingContext(sharedSecret(await exchange(own, publicKey), enc, publicKey), info, enc);
  }

  /** The next message. @param {Uint8Array} plaintext @param {Uint8Array} [aad] @returns {Promise<Uint8Array>} */
  async seal(plaintext, aad = NOTHING) {
    const nonce = Uint8Array.from(this.baseNonce);
    const view = new DataView(nonce.buffer);
    view.setUint32(8, view.getUint32(8) ^ this.#sequence);
    this.#sequence += 1;
    return encrypt(this.key, nonce, plaintext, aad);
  }

  /** A secret for another use, which only the two sides know. @param {Uint8Array} context @param {number} length */
  export(context, length) {
    return labelledExpand(SUITE, this.exporterSecret, "sec", context, length);
  }
}

/**
 * Seal one message for the holder of a public key; four coin words make the key that is used once.
 * @param {Uint8Array} publicKey
 * @param {Uint8Array} plaintext
 * @param {Uint8Array} info
 * @param {import("../numbers/coins.js").Coins} coins
 * @param {Uint8Array} [aad]
 * @returns {Promise<Uint8Array>} 48 bytes more than the message
 */
export async function seal(publicKey, plaintext, info, coins, aad) {
  const context = await SealingContext.open(publicKey, info, randomBytes(coins, 4));
  return concat(context.enc, await context.seal(plaintext, aad));
}

/** Refuse, before anything is drawn, where the browser cannot seal or verify. */
export async function checkBrowser() {
  const found = subtle();
  try {
    await found.importKey("raw", BASE_POINT, "X25519", false, []);
    // The public key of RFC 8032, section 7.1, test 1.
    const known = unhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    await found.importKey("raw", known, "Ed25519", false, ["verify"]);
    await found.importKey("raw", new Uint8Array(16), "AES-GCM", false, ["encrypt", "decrypt"]);
  } catch {
    throw new CannotSeal("browser");
  }
}
