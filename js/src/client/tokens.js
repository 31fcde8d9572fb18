/**
 * Anonymous tokens: what a document says about them, and redeeming an invitation for one before anything is drawn. The
 * twin of `tacit.wire.tokens` and `tacit.client.tokens`; loaded for documents of version 3 alone. Signatures are checked
 * under the key that the document pins, which everybody who has its address has: no key marks anybody.
 */

import { randomBytes } from "../base.js";
import { blind, finalize } from "../sealed/blind_rsa.js";
import { insist, matches } from "../numbers/checks.js";
import { InvalidSpec, TacitError } from "../errors.js";
import { checkFields } from "../nested.js";
import { concat, hex, unhex, utf8 } from "../numbers/sha256.js";

const LABEL = "tacit token\0";

/** Refuse tokens where they admit to nothing, and kept reports where nobody looks at them. @param {any} value the document */
export function checkTokens({ tokens, integrity, invitations, shuffle, windows, plan, rows }) {
  const alone = (/** @type {any[]} */ parts, /** @type {string} */ why) =>
    insist(parts.every((part) => part === null), "document", `without shuffle, windows and plan where ${why}`);
  if (integrity !== null) {
    checkFields("document.integrity", ["reports"], integrity);
    insist(integrity.reports === "until_closed", "document.integrity.reports", '"until_closed"');
    alone([shuffle, windows, plan, rows], "reports are kept, and without rows");
  }
  if (tokens === null) return;
  checkFields("document.tokens", ["key"], tokens);
  insist(matches(tokens.key, /^[89a-f][0-9a-f]{510}[13579bdf]$/), "document.tokens.key", "an odd modulus of 2048 bits");
  insist(invitations, "document.invitations", "true where there are tokens");
  alone([shuffle, windows, plan], "there are tokens");
}

/** @param {string} id @param {Uint8Array} nonce what is signed */
const messageOf = (id, nonce) => concat(utf8(LABEL), unhex(id), nonce);

/** @param {Uint8Array} bytes */
const urlsafe = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");

/**
 * What this device asks for, written before it asks: whoever is interrupted asks for the same again.
 * @param {import("./client.js").Respondent} host
 * @param {string} id
 * @param {import("../sealed/blind_rsa.js").BlindKey} key
 * @returns {Promise<{token?: string, nonce: string, blinded: string, inverse: string}>}
 */
async function askedOf(host, id, key) {
  const nonce = randomBytes(host.coins, 4);
  const { blinded, inverse } = await blind(key, messageOf(id, nonce), host.coins);
  // Read again after waiting: another tab may have asked meanwhile, and one invitation is signed for one message.
  const kept = host.store.read();
  const asked = { nonce: hex(nonce), blinded: hex(blinded), inverse: inverse.toString(16) };
  kept.tokens = { [id]: asked, ...kept.tokens };
  host.store.write(kept);
  return kept.tokens[id];
}

/** @param {import("./client.js").Respondent} host @param {string} id @param {any} [asked] nothing to forget it */
function keep(host, id, asked) {
  const kept = host.store.read();
  kept.tokens = { ...kept.tokens, [id]: asked };
  host.store.write(kept);
}

/**
 * The token of this device for a collection, asked for if there is none yet; TacitError where there is none to be had.
 * @param {import("./client.js").Respondent} host
 * @param {import("../documents/document.js").Collection} collection
 * @param {string} base
 * @param {string} [invitation]
 * @returns {Promise<string>}
 */
export async function redeem(host, { id, tokens }, base, invitation) {
  const key = { modulus: BigInt(`0x${tokens.key}`), exponent: 65537n };
  const asked = host.store.read().tokens?.[id] ?? (await askedOf(host, id, key));
  if (asked.token) return asked.token;
  if (!invitation) throw new InvalidSpec(`collection ${id}: takes reports with a token alone; an invitation gives one`);
  const headers = { "Content-Type": "application/json", "Tacit-Invitation": invitation };
  const body = JSON.stringify({ blinded: asked.blinded });
  const { status, bytes } = await host.request(`${base}/c/${id}/tokens`, { method: "POST", headers, body });
  const reply = answerOf(bytes);
  // What was asked for is forgotten only where the collector itself refuses for good: an earlier attempt may have spent the
  // invitation on it, and its reply be lost.
  if (status > 399 && status < 500 && ![408, 425, 429].includes(status) && reply.title) {
    keep(host, id);
    throw new TacitError(`collection ${id}: no token: ${reply.title}; nothing was drawn`);
  }
  if (!matches(reply.signature, /^([0-9a-f]{2})+$/)) {
    throw new TacitError(`collection ${id}: no token now, and nothing was drawn; try again with the same invitation`);
  }
  const nonce = unhex(asked.nonce);
  const blinding = { blinded: unhex(asked.blinded), inverse: BigInt(`0x${asked.inverse}`) };
  const signature = await finalize(key, messageOf(id, nonce), unhex(reply.signature), blinding);
  const token = `tok_${urlsafe(concat(nonce, signature))}`;
  // What could connect the token with the request is erased as soon as it is not needed.
  keep(host, id, { token });
  return token;
}

/** @param {Uint8Array} bytes @returns {any} */
function answerOf(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}
