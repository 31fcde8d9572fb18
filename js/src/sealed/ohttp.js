/**
 * Oblivious HTTP (RFC 9458) with binary messages (RFC 9292), the client's side: requests that a relay passes on and
 * cannot read. The twin of `tacit.shuffle.crypto.ohttp` and `bhttp`.
 */

import { randomBytes } from "../base.js";
import { TacitError } from "../errors.js";
import { KDF_AND_AEAD, KEM, SealingContext, expand, extract, subtle, twoBytes } from "./hpke.js";
import { concat, utf8 } from "../numbers/sha256.js";

/** The media type of a request in its envelope. */
export const REQUEST_TYPE = "message/ohttp-req";
/** Requests are filled up to a multiple of this, and questions, whose paths differ, to a larger one. */
const PADDED_TO = 64;
export const QUESTION_BYTES = 256;
const NONCE_BYTES = 16;

/** An integer of variable length (RFC 9000, section 16), below 2^14: nothing here is longer. @param {number} value */
const integer = (value) => (value < 64 ? Uint8Array.of(value) : twoBytes(0x4000 | value));

/** @param {Uint8Array} content @returns {Uint8Array} the content after its length */
const sized = (content) => concat(integer(content.length), content);

/**
 * A request as a binary message, filled up with zeros so that its size says little about what is in it.
 * @param {string} method
 * @param {string} address
 * @param {Record<string, string>} headers
 * @param {Uint8Array} content
 * @param {number} [multiple] its size is a multiple of this
 * @returns {Uint8Array}
 */
export function binaryRequest(method, address, headers, content, multiple = PADDED_TO) {
  const { protocol, host, pathname } = new URL(address);
  const control = [method, protocol.slice(0, -1), host, pathname].map((text) => sized(utf8(text)));
  const fields = Object.entries(headers).flat().map((text) => sized(utf8(text)));
  const message = concat(Uint8Array.of(0), ...control, sized(concat(...fields)), sized(content), Uint8Array.of(0));
  return concat(message, new Uint8Array((multiple - (message.length % multiple)) % multiple));
}

/** The status of a binary response; 0 for what is none. @param {Uint8Array} message @returns {number} */
export const statusOf = ([type, high, low]) => (type === 1 && high >> 6 === 1 ? ((high & 63) << 8) | low : 0);

/**
 * The content of a binary response without fields; nothing of what is none.
 * @param {Uint8Array} message
 * @returns {Uint8Array}
 */
export function contentOf(message) {
  const [fields, first, second] = message.slice(3);
  const [start, size] = first >> 6 === 1 ? [6, ((first & 63) << 8) | second] : [5, first];
  return message.slice(start, fields === 0 ? start + size : start);
}

/**
 * A request in its envelope, and what opens the answer to it.
 * @param {number} keyId
 * @param {Uint8Array} publicKey of the gateway
 * @param {Uint8Array} request
 * @param {import("../numbers/coins.js").Coins} coins four words make the key that is used once
 */
export async function encapsulate(keyId, publicKey, request, coins) {
  const header = concat(Uint8Array.of(keyId), KEM, KDF_AND_AEAD);
  const info = concat(utf8("message/bhttp request"), Uint8Array.of(0), header);
  const context = await SealingContext.open(publicKey, info, randomBytes(coins, 4));
  const sent = concat(header, context.enc, await context.seal(request));
  return { sent, open: (/** @type {Uint8Array} */ answer) => openResponse(context, answer) };
}

/** @param {SealingContext} context @param {Uint8Array} answer @returns {Promise<Uint8Array>} the response inside */
async function openResponse(context, answer) {
  const secret = context.export(utf8("message/bhttp response"), 16);
  const inner = extract(concat(context.enc, answer.slice(0, NONCE_BYTES)), secret);
  const [key, iv] = [expand(inner, utf8("key"), 16), expand(inner, utf8("nonce"), 12)];
  const cipher = await subtle().importKey("raw", key, "AES-GCM", false, ["decrypt"]);
  try {
    return new Uint8Array(await subtle().decrypt({ name: "AES-GCM", iv }, cipher, answer.slice(NONCE_BYTES)));
  } catch {
    throw new TacitError("relay: it did not bring an answer of the shuffler");
  }
}
