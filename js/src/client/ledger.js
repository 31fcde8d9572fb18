/**
 * The ledger of a device: which collections were answered, what that spent, and the noisy bytes that wait to be sent.
 * Never an answer, nor anything that is looked up by one. Kept in `localStorage` or anything else like it.
 *
 * @typedef {{getItem: (key: string) => string | null, setItem: (key: string, value: string) => void}} Store
 * @typedef {object} Entry one report, perturbed once; every attempt to send it sends the same bytes
 * @property {string} collection the id of the document
 * @property {string} base where the collector is
 * @property {Record<string, string>} title
 * @property {import("../numbers/budget.js").WireBudget} epsilon
 * @property {string} batch 16 random bytes in hexadecimal
 * @property {number} member which question it speaks of, where one is drawn
 * @property {string} report the noisy bytes in hexadecimal
 * @property {"held" | "pending" | "sent" | "refused"} state held: made and kept, its owner has not agreed to send it;
 * pending: to be sent until the collector acknowledges it; sent: acknowledged; refused: for good
 * @property {string} reason why it was refused
 * @property {string} plan what is answered once: the first document of an adaptive plan, or the collection itself
 * @property {string} invitation what has to be sent along; empty once it was
 * @property {Record<string, any> | null} [row] the public columns that go along with it
 * @property {number} [window] the window that it is about, where the collection has windows
 * @property {Sealed | null} [sealed] where reports are shuffled: what is sent in the place of `report`, null before it
 * was sealed. A report that has this field is never sent in the clear
 * @typedef {object} Sealed a report as it was sealed for one session; these bytes never change
 * @property {string} session
 * @property {string} slot its random place in the session
 * @property {string} relay the address that parts go through; empty if they go straight to the shufflers
 * @property {{url: string, key: string, body: string}[]} parts in a chain one, for the first shuffler; else one for each
 * @property {string[]} shufflers the addresses of all shufflers
 * @property {string[]} [keys] of all shufflers, for questions through the relay
 * @property {number} enough so many of them must say that the session was aborted before the report is sealed again
 * @property {{slot: string, index: number, path: string[], root: string, n: number} | null} proof what shows
 * that the slot took part, kept because shufflers erase theirs and what is published may vanish
 * @property {boolean} took_part whether that was seen, so that it is never sealed again
 * @typedef {object} Kept
 * @property {Entry[]} entries
 * @property {string} secret 32 random bytes in hexadecimal, made when a memoised collection is answered first
 * @property {Record<string, {seen: string[], last: string}>} memories what `Memory` keeps, by collection
 * @property {Record<string, any>} [tokens] by collection, until a report takes it along: a token, or what asks for one
 */

import { randomBytes } from "../base.js";
import { asBudget } from "../numbers/budget.js";
import { InvalidSpec, TacitError } from "../errors.js";
import { hex } from "../numbers/sha256.js";

const KEY = "tacit";

/** A report that was made and kept, and that its owner has not agreed to send. */
export const HELD = "held";

/** A collection was answered before on this device; `receipt` is that of the first answer. */
export class AlreadyAnswered extends TacitError {
  /** @param {Entry} entry */
  constructor(entry) {
    super(`collection ${entry.collection}: was answered already; a second answer would spend epsilon again`);
    this.receipt = receiptOf(entry);
  }

  get name() {
    return "AlreadyAnswered";
  }
}

/** What a respondent is told about a report; of a sealed one also its session and slot. @param {Entry} entry */
export const receiptOf = ({ collection, batch, epsilon, state, reason, sealed }) => ({
  ...{ collection, batch, epsilon, state, reason },
  ...(sealed && { session: sealed.session, slot: sealed.slot }),
});

/** What this device answered. Everything is read from the store and written back at once: other tabs use it too. */
export class Ledger {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
  }

  /** @returns {Kept} */
  read() {
    const text = this.store.getItem(KEY);
    try {
      return text === null ? { entries: [], secret: "", memories: {} } : JSON.parse(text);
    } catch {
      // Starting anew would spend epsilon again on what was answered already.
      throw new InvalidSpec("ledger: cannot be read");
    }
  }

  /** @param {Kept} kept */
  write(kept) {
    this.store.setItem(KEY, JSON.stringify(kept));
  }

  /**
   * Perturb once and remember the noisy bytes before anything is sent; a second answer is refused.
   * @param {import("../documents/document.js").Collection} collection
   * @param {Record<string, any>} answers
   * @param {{coins: import("../numbers/coins.js").Coins, base: string, invitation?: string, row?: any, state?: Entry["state"]}} how
   * @returns {Entry}
   */
  record(collection, answers, { coins, base, invitation = "", row: given, state = "pending" }) {
    // Read, decide and write without waiting in between: another tab cannot slip in a second answer.
    const kept = this.read();
    const { id, planId, title, epsilon, mechanism } = collection;
    const before = kept.entries.find((entry) => isAbout(entry, id, planId));
    const [value, row] = [collection.encode(answers), collection.checkRow(given)];
    if (before && !mechanism.repeats) throw new AlreadyAnswered(before);
    const bytes = mechanism.repeats ? repeat(mechanism, id, value, kept, coins) : mechanism.privatizeOne(value, coins);
    const { member, payload } = mechanism.unpack(bytes);
    /** @type {Entry} */
    const entry = {
      ...{ collection: id, base, title, epsilon, batch: hex(randomBytes(coins, 2)), member, report: hex(payload) },
      ...{ state, reason: "", invitation, plan: planId, row },
      ...(collection.shuffle && { sealed: null }),
    };
    kept.entries.push(entry);
    delete kept.tokens?.[id];
    this.write(kept);
    return entry;
  }

  /** Whether a collection takes no further answer of this device. @param {import("../documents/document.js").Collection} collection */
  hasAnswered({ id, planId, mechanism }) {
    return !mechanism.repeats && this.read().entries.some((entry) => isAbout(entry, id, planId));
  }

  /**
   * Note what became of a report.
   * @param {string} batch
   * @param {Partial<Entry>} change
   * @param {Entry["state"]} [from] the state it must be in
   * @returns {Entry}
   */
  settle(batch, change, from) {
    return this.#change(batch, (entry) => from && entry.state !== from, change) ?? absent();
  }

  /**
   * Keep the bytes that a report was sealed to, unless another tab was faster: two sealed forms of one report in one
   * session would count twice.
   * @param {string} batch
   * @param {string} [before] the session that it was sealed for
   * @param {Sealed} sealed
   * @returns {Entry} as it is now, sealed by whoever was first
   */
  seal(batch, before, sealed) {
    const change = { sealed, state: /** @type {const} */ ("pending"), reason: "" };
    const isOld = (/** @type {Entry} */ entry) => entry.sealed?.session !== before;
    return this.#change(batch, isOld, change) ?? this.read().entries.find((one) => one.batch === batch) ?? absent();
  }

  /** @param {string} batch @param {(entry: Entry) => unknown} isBarred @param {Partial<Entry>} change */
  #change(batch, isBarred, change) {
    const kept = this.read();
    const entry = kept.entries.find((one) => one.batch === batch);
    if (!entry || isBarred(entry)) return undefined;
    Object.assign(entry, change);
    this.write(kept);
    return entry;
  }

  /**
   * What was spent, by collection (with the state of its last report that is not held, if there is one) and in all: a
   * repeated answer costs epsilon for every different value, a report that is held has cost nothing yet.
   */
  spent() {
    const { entries, memories } = this.read();
    /** @type {Map<string, Entry>} */
    const last = new Map();
    for (const entry of entries) {
      if (entry.state !== HELD || !last.has(entry.collection)) last.set(entry.collection, entry);
    }
    const collections = [...last.values()].map(({ collection, title, epsilon, state }) => {
      const [top, bottom] = asBudget(epsilon).declared;
      const times = memories[collection]?.seen.length ?? 1;
      return { collection, title, epsilon: (Number(top) / Number(bottom)) * times, state };
    });
    return { collections, total: collections.reduce((sum, one) => sum + (one.state === HELD ? 0 : one.epsilon), 0) };
  }
}

/** @returns {never} */
function absent() {
  throw new InvalidSpec("ledger: no such report");
}

/**
 * Whether a report is on this collection, or on a round of its plan; neither the collection nor the plan is answered
 * twice, whatever a document says of the other.
 * @param {Entry} entry
 * @param {string} id
 * @param {string} planId
 * @returns {boolean}
 */
const isAbout = ({ collection, plan }, id, planId) => collection === id || [collection, plan].includes(planId);

/**
 * The memoised report under the one secret of this device.
 * @param {any} mechanism
 * @param {string} id
 * @param {any} value
 * @param {Kept} kept
 * @param {import("../numbers/coins.js").Coins} coins
 * @returns {Uint8Array}
 */
function repeat(mechanism, id, value, kept, coins) {
  kept.secret ||= hex(randomBytes(coins, 4));
  const { report, kept: memory } = mechanism.repeat(value, kept.secret, id, kept.memories[id], coins);
  kept.memories[id] = memory;
  return report;
}
