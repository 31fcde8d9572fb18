/**
 * Whether a sealed report took part: what shufflers and the collector publish about a session, checked.
 * The twin of `tacit.client.sealed.inclusion`. A slot is in a Merkle tree (RFC 6962) whose root all shufflers signed.
 */

import { areDifferent, isObject, matches } from "../numbers/checks.js";
import { areIntegers } from "../numbers/exact.js";
import { demand, isChain, isSigned } from "./session.js";
import { concat, hex, sha256, unhex } from "../numbers/sha256.js";

const HASH = /^[0-9a-f]{64}$/;
/** Bytes of a level that are hashed at a time. */
const BATCH = 64 * 4096;

/** @param {number} kind 0 for a leaf, 1 for a node, so that neither can be shown as the other @param {...Uint8Array} parts */
const hashed = (kind, ...parts) => sha256(concat(Uint8Array.of(kind), ...parts));

/**
 * Whether a proof shows that a slot is in the list of `size` slots with this root.
 * @param {string} root
 * @param {number} size
 * @param {{slot: string, index: number, path: string[]}} proof
 * @returns {boolean}
 */
export function isIncluded(root, size, { slot, index, path }) {
  if (!areIntegers([size], 1) || !areIntegers([index], 0, size - 1)) return false;
  let [node, rest, place] = [hashed(0, unhex(slot)), path.map(unhex), index];
  for (let left = size; left > 1; left = Math.ceil(left / 2)) {
    // The last node of a level may have no neighbour, and moves up as it is.
    if ((place ^ 1) < left) {
      const other = rest.shift();
      if (!other) return false;
      node = place & 1 ? hashed(1, other, node) : hashed(1, node, other);
    }
    place >>= 1;
  }
  return rest.length === 0 && hex(node) === root;
}

/**
 * Whether this is a proof for a slot that leads to the root that it states.
 * @param {any} value
 * @param {string} slot
 * @returns {value is {slot: string, index: number, path: string[], root: string, n: number}}
 */
export function isProof(value, slot) {
  if (!isObject(value) || value.slot !== slot || !Array.isArray(value.path)) return false;
  const { path, root, n } = value;
  return [...path, root].every((node) => matches(node, HASH)) && isIncluded(root, n, /** @type {any} */ (value));
}

/**
 * Whether a shuffler says that it gave a session up before anything could reach the collector: signed by the identity
 * that the document pins, as whoever answers at its address could say so after the reports were counted.
 * @param {string} identity
 * @param {string} session the one that was asked about
 * @param {any} status what was answered
 * @returns {Promise<boolean>}
 */
export const saysAborted = (identity, session, status) =>
  // A shuffler that had sent its last rows cannot know whether the collector put them together before it gave up.
  isSigned(identity, "status", { session, state: "ABORTED", had_sent: false }, status?.signature);

/**
 * The list of slots of a transcript, as their hashes; ProtocolViolation if a shuffler that takes uploads did not sign
 * it, or if it is too short. The session that it names was verified when the report was sealed.
 * @param {import("../documents/document.js").Collection} collection
 * @param {any} published the signed session and its transcript
 * @returns {Promise<{session: string, root: string, n: number, leaves: string[]}>}
 */
export async function rosterOf({ shuffle: { shufflers, mode, minimum, spot_checks: checks } }, published) {
  const { session, attempt, roster } = published?.transcript ?? {};
  const listed = isObject(roster) && matches(roster.root, HASH) && areIntegers([roster.n], minimum + checks);
  demand(listed, "transcript: it has no list of enough uploads");
  const statement = { session, attempt, root: roster.root, n: roster.n };
  for (const [i, { identity }] of shufflers.slice(0, isChain(mode) ? 1 : undefined).entries()) {
    const signature = roster.signatures?.[`shuffler_${i + 1}`];
    demand(await isSigned(identity, "roster", statement, signature), `transcript: shuffler_${i + 1} signed other uploads`);
  }
  const leaves = matches(roster.leaves, /^[0-9a-f]/) ? (roster.leaves.match(/.{1,64}/gs) ?? []) : [];
  const whole = leaves.length === roster.n && leaves.every((leaf) => HASH.test(leaf)) && areDifferent(leaves);
  demand(whole, "transcript: it does not have the hashes of all uploads");
  return { ...statement, leaves };
}

/**
 * What shows that a slot is in the list of a transcript; null if it is not. Nobody is asked about the slot.
 * ProtocolViolation if the hashes are not under the root that shufflers signed.
 *
 * All hashes are needed for that, also for a slot that is there: the path to the root is made of them. A collector that
 * sent the path alone would have to be told the slot first, and would know whose it is.
 * @param {Awaited<ReturnType<typeof rosterOf>>} roster
 * @param {string} slot
 */
export async function proofIn({ root, n, leaves }, slot) {
  const index = leaves.indexOf(hex(hashed(0, unhex(slot))));
  /** @type {string[]} */
  const path = [];
  let level = unhex(leaves.join(""));
  for (let place = index; level.length > 32; place >>= 1) {
    const other = 32 * (place ^ 1);
    if (index >= 0 && other < level.length) path.push(hex(level.subarray(other, other + 32)));
    level = await above(level);
  }
  demand(hex(level) === root, "transcript: its hashes are not those that shufflers signed");
  return index < 0 ? null : { slot, index, path, root, n };
}

/** The nodes above those of a level, end to end; the last may have no neighbour, and moves up. @param {Uint8Array} level */
async function above(level) {
  const nodes = new Uint8Array(32 * Math.ceil(level.length / 64));
  for (let start = 0; start < level.length; start += 64) {
    // There may be a million: the page gets a turn now and then.
    if (start % BATCH === 0) await new Promise((done) => setTimeout(done));
    const pair = level.subarray(start, start + 64);
    nodes.set(pair.length === 64 ? hashed(1, pair) : pair, start / 2);
  }
  return nodes;
}
