/**
 * The client of a respondent: fetch and verify a collection document, perturb the answers once, send the report until
 * the collector has it. Works on pages served over plain http, except for shuffled collections: their reports are
 * sealed by `sealing`, which is loaded for them alone, and never sent in the clear.
 *
 * @typedef {ReturnType<typeof receiptOf>} Receipt
 * @typedef {object} Options
 * @property {Collection} [collection] a document that was opened before
 * @property {string} [invitation]
 * @property {Record<string, any>} [row] the public columns that go along, where the document has any
 */

import { littleEndian } from "../base.js";
import { SystemCoins } from "../numbers/coins.js";
import { Collection } from "../documents/document.js";
import { InvalidSpec, TacitError } from "../errors.js";
import { HELD, Ledger, receiptOf } from "./ledger.js";
import { loadSealing, loadTicks, loadTokens } from "../load.js";
import { concat, unhex, utf8 } from "../numbers/sha256.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 30000;
/** Bytes that are not UTF-8 are no document: replacing them would answer another one than was sent. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Where a collection is: the address of its page or of its document.
 * @param {string} address
 * @returns {{base: string, id: string}}
 */
function locate(address) {
  const { origin, pathname } = new URL(address, globalThis.location?.href);
  const match = /^(.*)\/c\/([0-9a-f]{64})(?:\/document\.json)?$/.exec(pathname);
  if (!match) throw new InvalidSpec("address: must end in /c/ and a digest");
  return { base: origin + match[1], id: match[2] };
}

/**
 * A batch of one report, the same bytes at every attempt: binary, or its JSON twin where a row goes along.
 * @param {Pick<import("./ledger.js").Entry, "collection" | "batch" | "member" | "report" | "row" | "window">} entry
 */
export function batchOf({ collection, batch, member, report, row, window }) {
  if (row) return JSON.stringify({ collection, batch, reports: [{ member, report, row }] });
  const block = concat(littleEndian(member, 4), littleEndian(1, 4), unhex(report));
  const [magic, about] = window === undefined ? ["TCB1", []] : ["TCB2", [littleEndian(window, 4)]];
  return concat(utf8(magic), unhex(collection), unhex(batch), ...about, block);
}

/** @param {Pick<import("./ledger.js").Entry, "base" | "collection">} entry */
const target = ({ base, collection }) => `${base}/c/${collection}/reports`;

/** The upload of a report. @param {import("./ledger.js").Entry} entry @returns {RequestInit} */
function uploadOf(entry) {
  // As plain text, which the binary form is not, it needs no question in advance from a page of another origin.
  const headers = { "Content-Type": "text/plain", ...(entry.invitation && { "Tacit-Invitation": entry.invitation }) };
  return { method: "POST", headers, body: batchOf(entry) };
}

/** Why there is no document: what the collector says of this page's origin, or the bare status. @param {Uint8Array} bytes @param {number} status */
function whyNot(bytes, status) {
  const { type, detail } = jsonOf(bytes) ?? {};
  return type === "urn:tacit:error:origin" ? detail : status || "offline";
}

/** What a browser keeps for the origin of a page. @returns {import("./ledger.js").Store} */
export function storageHere() {
  const { localStorage: found } = globalThis;
  if (found) return found;
  throw new InvalidSpec("storage: there is no localStorage here; in Node, give { storage: new FileStorage(path) } of tacit/node");
}

/** One person on one device. */
export class Respondent {
  /**
   * @param {object} [options]
   * @param {import("./ledger.js").Store} [options.storage] where the ledger is kept
   * @param {import("../numbers/coins.js").Coins} [options.coins]
   * @param {typeof fetch} [options.fetch]
   * @param {number} [options.attempts] how often to try before a report waits for `flush`
   * @param {(milliseconds: number) => Promise<unknown>} [options.sleep]
   * @param {() => number} [options.now] milliseconds since 1970, by which sessions of a shuffle close
   */
  constructor({ storage = storageHere(), coins = new SystemCoins(), fetch: get, attempts = 5, sleep = pause, now = Date.now } = {}) {
    if (!coins.secure) throw new InvalidSpec("coins: must be secure, such as SystemCoins");
    this.coins = coins;
    this.attempts = attempts;
    this.sleep = sleep;
    this.now = now;
    this.fetch = get ?? ((/** @type {any} */ ...request) => fetch(...request));
    this.store = new Ledger(storage);
  }

  /**
   * Fetch a document and verify that it is the one the address names.
   * @param {string} address
   * @returns {Promise<Collection>}
   */
  async open(address) {
    const { base, id } = locate(address);
    const { bytes, status } = await this.request(`${base}/c/${id}/document.json`);
    if (status !== 200) throw new TacitError(`collection ${id}: no document (${whyNot(bytes, status)})`);
    const collection = await Collection.read(textOf(bytes));
    if (collection.id === id) return collection;
    throw new InvalidSpec(`collection ${id}: the document has another digest; do not answer it`);
  }

  /**
   * Answer a collection: perturb once, remember the noisy bytes, send them. A report that cannot be sent now stays
   * pending; a second answer is refused with `AlreadyAnswered`, unless the mechanism memoises.
   * @param {string} address
   * @param {Record<string, any>} answers by the name of the question
   * @param {Options} [options]
   * @returns {Promise<Receipt>}
   */
  async answer(address, answers, options) {
    return this.#send(await this.#record(address, answers, options));
  }

  /**
   * Take part in a collection that asks again and again: call `tick(value)` of the result once a day.
   * @param {string} address
   * @param {{store?: import("./ticks.js").WindowStore, policy?: import("./ticks.js").Policy}} [options] the policy caps all
   * accounts of this device together
   * @returns {Promise<import("./ticks.js").WindowedCollection>}
   */
  async join(address, options) {
    const { join } = await loadTicks();
    return join(this, await this.open(address), locate(address).base, options);
  }

  /**
   * What this device has spent on collections that ask again and again, by account.
   * @param {{store?: import("./ticks.js").WindowStore}} [options]
   * @returns {Promise<any[]>}
   */
  async accounts(options) {
    return (await loadTicks()).accounts(this, options);
  }

  /** One attempt to send a report; undefined if it has to be sent again. @param {any} entry */
  async attempt(entry) {
    const { status, bytes, after } = await this.request(target(entry), uploadOf(entry));
    return { change: outcome(status, jsonOf(bytes)), after };
  }

  /**
   * Perturb once, remember and hold: the noisy report can be shown, and nothing is sent before `release`.
   * @param {string} address
   * @param {Record<string, any>} answers
   * @param {Options} [options]
   * @returns {Promise<import("./ledger.js").Entry>}
   */
  async prepare(address, answers, options) {
    return this.#record(address, answers, options, HELD);
  }

  /** Send a report that was held; its owner has agreed. @param {string} batch @returns {Promise<Receipt>} */
  async release(batch) {
    return this.#send(this.store.settle(batch, { state: "pending" }, HELD));
  }

  /**
   * The session that takes reports of a shuffled collection now, verified, with what its operators claim; CannotSeal,
   * ProtocolViolation or TacitError where nothing may be drawn.
   * @param {string} address
   * @param {Options} [options]
   * @returns {Promise<import("../sealed/session.js").Session>}
   */
  async session(address, { collection } = {}) {
    const { sessionOf } = await loadSealing();
    return sessionOf(this, collection ?? (await this.open(address)), locate(address).base);
  }

  /**
   * @param {string} address
   * @param {Record<string, any>} answers
   * @param {Options} [options]
   * @param {import("./ledger.js").Entry["state"]} [state]
   */
  async #record(address, answers, { collection, ...options } = {}, state = undefined) {
    const { base, id } = locate(address);
    const opened = collection?.id === id ? collection : await this.open(address);
    if (opened.windows) throw new InvalidSpec("collection: asks again and again; take part with join");
    // A session that is not as it must be is refused before anything is drawn. There is no way on in the clear.
    if (opened.shuffle) await this.session(address, { collection: opened });
    // Nothing is asked for what is refused below: an answer outside its domain, or a second one.
    opened.encode(answers);
    const invitation = opened.tokens ? await this.#token(opened, base, options.invitation) : options.invitation;
    return this.store.record(opened, answers, { ...options, invitation, coins: this.coins, base, state });
  }

  /**
   * Redeem an invitation for an anonymous token, which `answer` sends along; a while before is best, for whoever asks
   * and reports at once is connected by the clock.
   * @param {string} address
   * @param {string} invitation
   */
  async redeem(address, invitation) {
    await (await loadTokens()).redeem(this, await this.open(address), locate(address).base, invitation);
  }

  /** @param {Collection} collection @param {string} base @param {string} [invitation] */
  async #token(collection, base, invitation) {
    if (this.store.hasAnswered(collection)) return "";
    return (await loadTokens()).redeem(this, collection, base, invitation);
  }

  /**
   * Send what is pending. A sealed report whose session was aborted, sent or not, is sealed for the next session and
   * sent again: the same report, since a second one on the same answer would spend epsilon again.
   * @returns {Promise<Receipt[]>}
   */
  async flush() {
    const sealed = this.#entries("sent", "pending").filter((entry) => entry.sealed);
    if (sealed.length) await (await loadSealing()).sealAgain(this, sealed);
    const receipts = [];
    for (const entry of this.#entries("pending")) receipts.push(await this.#send(entry));
    return receipts;
  }

  /**
   * Whether a sealed report took part in the shuffle, from its shufflers and the transcript.
   * @param {string} batch
   */
  async check(batch) {
    return (await loadSealing()).check(this, batch);
  }

  /** What was spent, by collection and in all. */
  ledger() {
    return this.store.spent();
  }

  /**
   * Send what is pending when the page goes away, and when the network comes back.
   * @param {EventTarget} [page]
   */
  attach(page = globalThis) {
    page.addEventListener("pagehide", () => this.beacon());
    page.addEventListener("online", () => void this.flush());
  }

  /**
   * Hand what is pending to the browser, which sends it even after the page is gone. Nobody waits for a reply: what is
   * sent stays pending, and the collector recognises the batch when it is sent again. Not `navigator.sendBeacon`, which
   * always sends cookies. Sealed reports go only where every part can: not through a relay, whose requests take time.
   */
  beacon() {
    const keep = (/** @type {string} */ url, /** @type {RequestInit} */ request) =>
      void this.request(url, { ...request, keepalive: true });
    for (const entry of this.#entries("pending")) {
      if (entry.sealed === undefined) keep(target(entry), uploadOf(entry));
      else for (const [url, request] of this.#uploads?.(entry) ?? []) keep(url, request);
    }
  }

  /** What makes the requests of a sealed report, once it was loaded: a page that goes away waits for nothing. */
  #uploads = /** @type {((entry: import("./ledger.js").Entry) => [string, RequestInit][]) | undefined} */ (undefined);

  /** @param {...import("./ledger.js").Entry["state"]} states */
  #entries(...states) {
    return this.store.read().entries.filter(({ state }) => states.includes(state));
  }

  /**
   * Send one report until the collector has it or refuses it for good, or until the attempts are used up.
   * @param {import("./ledger.js").Entry} entry
   * @returns {Promise<Receipt>}
   */
  async #send(entry) {
    if (entry.sealed !== undefined) return this.#sendSealed(entry);
    return this.#persist(entry, () => this.attempt(entry));
  }

  /**
   * @param {import("./ledger.js").Entry} entry
   * @param {() => Promise<{change?: Partial<import("./ledger.js").Entry>, after: number, reason?: string}>} attempt
   * @returns {Promise<Receipt>}
   */
  async #persist(entry, attempt) {
    for (let tries = 1, wait = FIRST_WAIT; ; tries += 1, wait = Math.min(2 * wait, LONGEST_WAIT)) {
      const { change, after, reason = "" } = await attempt();
      if (change) return receiptOf(this.store.settle(entry.batch, change));
      if (tries >= this.attempts || after > LONGEST_WAIT) {
        return receiptOf(reason === entry.reason ? entry : this.store.settle(entry.batch, { reason }));
      }
      await this.sleep(Math.max(after, wait / 2 + this.coins.uniform(wait / 2)));
    }
  }

  /**
   * Seal a report if it is not, and send its parts until every shuffler has its own.
   * @param {import("./ledger.js").Entry} entry
   * @returns {Promise<Receipt>}
   */
  async #sendSealed(entry) {
    const { sendSealed, uploadsOf } = await loadSealing();
    this.#uploads = uploadsOf;
    return sendSealed(this, entry, (sealed, attempt) => this.#persist(sealed, attempt));
  }

  /**
   * One request, without cookies, that follows no redirection; status 0 if there is no reply.
   * @param {string} url
   * @param {RequestInit} [request]
   * @returns {Promise<{status: number, bytes: Uint8Array, after: number}>}
   */
  async request(url, request = {}) {
    try {
      const reply = await this.fetch(url, { ...request, credentials: "omit", redirect: "error" });
      const after = 1000 * Number(reply.headers.get("Retry-After")) || 0;
      return { status: reply.status, after, bytes: new Uint8Array(await reply.arrayBuffer()) };
    } catch {
      return { status: 0, after: 0, bytes: new Uint8Array() };
    }
  }
}

/** @param {Uint8Array} bytes @returns {string} */
function textOf(bytes) {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new InvalidSpec("document must be UTF-8");
  }
}

/** @param {Uint8Array} bytes @returns {any} JSON, or null where it is none */
function jsonOf(bytes) {
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    return null;
  }
}

/** @param {number} milliseconds */
const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));

/**
 * What a reply means for a report; undefined if it has to be sent again.
 * @param {number} status
 * @param {any} body
 * @returns {Partial<import("./ledger.js").Entry> | undefined}
 */
function outcome(status, body) {
  // A network that answers with a page of its own has not stored anything.
  if (status < 300 && Number.isInteger(body?.accepted)) {
    const [refused] = body.accepted || body.duplicate ? [] : body.rejected;
    return { state: refused ? "refused" : "sent", reason: refused?.reason ?? "", invitation: "" };
  }
  if (status < 400 || status > 499 || [408, 425, 429].includes(status)) return undefined;
  return { state: "refused", reason: String(body?.title ?? status), invitation: "" };
}
