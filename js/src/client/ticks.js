/**
 * A collection that is asked again and again: one call a day that does the right thing. The twin of
 * `tacit.client.windows` and `tacit.device.windows.account`: whether a report may be drawn is decided here, from the
 * ledger of this device and its own clock. Loaded for documents with windows alone.
 *
 * Drawing, charging and storing the bytes are one transaction under a Web Lock, before anything is sent. Without locks
 * two tabs could draw twice, so that documents with windows are refused there; locks need https or localhost.
 *
 * @typedef {object} Kept the ledger of windows
 * @property {string} born the date on which it was made: a young one may have had a predecessor
 * @property {string} secret 32 random bytes in hexadecimal
 * @property {Record<string, {terms: any, record: AccountRecord, charged: Record<string, string>}>} accounts by collector and name
 * @property {Entry[]} entries
 * @property {[string, string][]} [days] dates and charges of all accounts, for policies of the host
 * @typedef {{days: number, epsilon: string}} Policy a cap of the host over all accounts: epsilon in any so many days in a row
 * @typedef {{high: number, charges: [number, string][], spent: string}} AccountRecord epsilons are exact fractions
 * @typedef {{collection: string, base: string, batch: string, member: number, report: string, window: number, epsilon: any,
 *   state: "pending" | "sent" | "refused" | "expired", reason: string, invitation: string, row: null}} Entry
 * @typedef {{change: <T>(decide: (kept: Kept) => T) => Promise<T>}} WindowStore reads, lets decide and writes, as one step
 */

import { randomBytes } from "../base.js";
import { asBudget } from "../numbers/budget.js";
import { InvalidSpec } from "../errors.js";
import { concat, hex, hmac, unhex, utf8 } from "../numbers/sha256.js";

export { checkWindowed } from "../documents/windows.js";

const DAY = 86_400_000;
/** States after which nothing is sent any more. */
const SETTLED = ["sent", "refused", "expired"];
/** So many days the dates of charges are kept, for policies of the host. */
const KEPT_DAYS = 400;

/** @typedef {[bigint, bigint]} Fraction */

/** @param {string} text such as "3" or "3/4" @returns {Fraction} */
const fraction = (text) => {
  const [top, bottom = "1"] = text.split("/");
  return [BigInt(top), BigInt(bottom)];
};

/** @param {Fraction} a @param {Fraction} b @returns {Fraction} in lowest terms */
function plus([a, b], [c, d]) {
  const [top, bottom] = [a * d + b * c, b * d];
  let [x, y] = [top, bottom];
  while (y) [x, y] = [y, x % y];
  return x ? [top / x, bottom / x] : [0n, 1n];
}

/** @param {Fraction} a @param {Fraction} b */
const exceeds = ([a, b], [c, d]) => a * d > c * b;

/** @param {Fraction} of @returns {string} as Python writes it */
const written = ([top, bottom]) => (bottom === 1n ? [top] : [top, bottom]).join("/");

/** @param {string} label @param {...Uint8Array} parts each preceded by its length @returns {Uint8Array} */
function message(label, ...parts) {
  return concat(utf8(label), ...parts.flatMap((part) => [bigEndian(part.length), part]));
}

/** @param {number} x @returns {Uint8Array} */
function bigEndian(x) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, x);
  return bytes;
}

/**
 * Which of `per` windows in a row a device reports on; drawn once, from its secret.
 * @param {string} secret
 * @param {string} id of the document
 * @param {number} per
 */
export function slotOf(secret, id, per) {
  const block = hmac(unhex(secret), message("LDP-SLOT-1", unhex(id)));
  return Number((BigInt("0x".concat(hex(block.slice(0, 8)))) * BigInt(per)) >> 64n);
}

/** The batch id that a window always has. @param {string} secret @param {string} id @param {number} window */
export const batchIdOf = (secret, id, window) =>
  hex(hmac(unhex(secret), message("LDP-BATCH-1", unhex(id), bigEndian(window))).slice(0, 16));

/** The window of a date; negative before the first one. @param {any} windows @param {string} date */
export function windowOf({ every, first }, date) {
  const [from, day] = [new Date(first), new Date(date)];
  if (every === "month") return 12 * (day.getUTCFullYear() - from.getUTCFullYear()) + day.getUTCMonth() - from.getUTCMonth();
  return Math.floor((Number(day) - Number(from)) / DAY / (every === "week" ? 7 : 1));
}

/** The first day of a window, such as 2030-01-07. @param {any} windows @param {number} window @returns {string} */
export function firstDayOf({ every, first }, window) {
  const day = new Date(first);
  if (every === "month") day.setUTCMonth(day.getUTCMonth() + window);
  else day.setUTCDate(day.getUTCDate() + window * (every === "week" ? 7 : 1));
  return day.toISOString().slice(0, 10);
}

/**
 * Reasons not to draw a report, in the order in which they are looked at; the first that holds is told.
 * @typedef {object} Asked
 * @property {any} windows
 * @property {any} account
 * @property {Fraction} epsilon
 * @property {number} window
 * @property {string} today
 * @property {string} born
 * @property {number} slot
 * @property {boolean} before whether this document has a report on this window
 * @property {AccountRecord} record
 * @property {Policy} [policy]
 * @property {[string, string][]} [days]
 * @type {[string, (asked: Asked) => boolean][]}
 */
const RULES = [
  ["outside", ({ window, windows }) => window < 0 || window >= windows.count],
  ["future", ({ window, windows, today }) => window > windowOf(windows, today)],
  ["too_late", ({ window, windows, today }) => windowOf(windows, today) - window > windows.late],
  ["passed", ({ window, record, before }) => window < record.high || before],
  ["cold", isCold],
  ["not_my_slot", ({ window, windows, slot }) => window % windows.per !== slot],
  ["run_cap", ({ window, account, record, epsilon }) => exceeds(plus(within(record, window, account.run), epsilon), asBudget(account.run_epsilon).declared)],
  ["lifetime_cap", ({ account: { lifetime_epsilon: cap }, record, epsilon }) => cap !== null && exceeds(plus(fraction(record.spent), epsilon), asBudget(cap).declared)],
  ["device_cap", isOverPolicy],
];

/** A ledger that was made after the calendar began may have had a predecessor: it waits out one run. @param {Asked} asked */
function isCold({ window, windows, account, born }) {
  const made = windowOf(windows, born);
  return made >= 0 && window < made + account.run;
}

/** Both directions count: a clock that was ahead has left charges in what is now the future. @param {Asked} asked */
function isOverPolicy({ policy, days = [], today, epsilon }) {
  if (!policy) return false;
  const near = days.filter(([day]) => daysApart(day, today) < policy.days).reduce((sum, [, cost]) => plus(sum, fraction(cost)), epsilon);
  return exceeds(near, asBudget(policy.epsilon).declared);
}

/** @param {string} one @param {string} other */
const daysApart = (one, other) => Math.abs(Number(new Date(one)) - Number(new Date(other))) / DAY;

/** What was charged to the run that ends with a window. @param {AccountRecord} record @param {number} last @param {number} run */
const within = ({ charges }, last, run) =>
  charges.filter(([window]) => window > last - run && window <= last).reduce((sum, [, cost]) => plus(sum, fraction(cost)), fraction("0"));

/** Why a report must not be drawn; empty if it may. @param {Asked} asked @returns {string} */
export const refusal = (asked) => RULES.find(([, fails]) => fails(asked))?.[0] ?? "";

/**
 * The next window that the device will report on, from the one asked about on; null if there is none. It looks at what is
 * known today: a cap that a window of another document uses up later is not foreseen.
 * @param {Asked} asked
 * @returns {number | null}
 */
export function nextSlot(asked) {
  const { windows, window: from, slot, record } = asked;
  for (let window = Math.max(0, from); window < windows.count; window += 1) {
    // As it will be asked on the first day of that window.
    const then = { ...asked, window, today: firstDayOf(windows, window), before: false };
    if (window % windows.per === slot && window > record.high && !refusal(then)) return window;
  }
  return null;
}

/** @returns {AccountRecord} */
export const emptyRecord = () => ({ high: -1, charges: [], spent: "0" });

/**
 * The record with one more charge; those that no later run can hold are dropped.
 * @param {AccountRecord} record @param {number} window @param {Fraction} epsilon @param {number} run
 * @returns {AccountRecord}
 */
export function charged(record, window, epsilon, run) {
  const high = Math.max(record.high, window);
  /** @type {[number, string][]} */
  const charges = [...record.charges, [window, written(epsilon)]];
  return { high, charges: charges.filter(([one]) => one > high - run), spent: written(plus(fraction(record.spent), epsilon)) };
}

/** @param {number} milliseconds @param {string} zone @returns {string} the civil date, such as 2030-01-07 */
function dateAt(milliseconds, zone) {
  const shift = zone === "local" ? new Date(milliseconds).getTimezoneOffset() * 60_000 : 0;
  return new Date(milliseconds - shift).toISOString().slice(0, 10);
}

/** The ledger of windows in IndexedDB, one transaction at a time under a Web Lock. @implements {WindowStore} */
export class IndexedWindows {
  constructor() {
    if (!globalThis.navigator?.locks || !globalThis.indexedDB) {
      throw new InvalidSpec("windows: need https or localhost, and a browser with locks; two tabs could draw twice without");
    }
  }

  /** @template T @param {(kept: Kept) => T} decide @returns {Promise<T>} */
  change(decide) {
    return navigator.locks.request("tacit-windows", async () => {
      const db = await done(Object.assign(indexedDB.open("tacit-windows", 1), {
        onupgradeneeded: (/** @type {any} */ event) => event.target.result.createObjectStore("ledger"),
      }));
      try {
        const transaction = db.transaction("ledger", "readwrite", { durability: "strict" });
        const ledger = transaction.objectStore("ledger");
        const kept = (await done(ledger.get("kept"))) ?? fresh();
        // Nothing is waited for between reading and writing, so that both are one transaction.
        const decided = decide(kept);
        ledger.put(kept, "kept");
        // Written before anything is sent: a report that was sent and forgotten would be drawn again.
        await committed(transaction);
        return decided;
      } finally {
        db.close();
      }
    });
  }
}

/** @param {IDBRequest} request @returns {Promise<any>} */
const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @param {IDBTransaction} transaction @returns {Promise<void>} */
const committed = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });

/** @returns {Kept} */
export const fresh = () => ({ born: "", secret: "", accounts: {}, entries: [], days: [] });

/**
 * @param {import("./client.js").Respondent} client
 * @param {import("../documents/document.js").Collection} collection
 * @param {string} base
 * @param {{store?: WindowStore, policy?: Policy}} [options]
 */
export function join(client, collection, base, { store, policy } = {}) {
  if (!collection.windows) throw new InvalidSpec(`collection ${collection.id}: has no windows; answer it once, with answer`);
  // Here, and not first when a report is asked for.
  if (policy && !(asBudget(policy.epsilon) && Number.isInteger(policy.days) && policy.days > 0 && policy.days <= KEPT_DAYS)) {
    throw new InvalidSpec(`policy: days must be from 1 to ${KEPT_DAYS}`);
  }
  return new WindowedCollection(client, collection, base, store ?? new IndexedWindows(), policy);
}

/**
 * What an account has cost in the run of windows that ends today, and in all.
 * @param {any} account @param {any} windows @param {AccountRecord} record @param {string} today
 */
function costs({ name, run, run_epsilon: runCap, lifetime_epsilon: lifetimeCap }, windows, record, today) {
  const spent = within(record, Math.max(windowOf(windows, today), record.high), run);
  return { name, run: written(spent), runCap, spent: record.spent, lifetimeCap };
}

/**
 * Every account of this device, with the collector that it is with and the collections that were charged to it.
 * @param {import("./client.js").Respondent} client
 * @param {{store?: WindowStore}} [options]
 */
export function accounts(client, { store = new IndexedWindows() } = {}) {
  return store.change((kept) =>
    Object.entries(kept.accounts).map(([key, { terms, record, charged: costing }]) => ({
      collector: key.slice(0, key.lastIndexOf(" ")),
      ...costs(terms, terms, record, dateAt(client.now(), terms.zone)),
      windows: terms.run,
      every: terms.every,
      collections: Object.keys(costing),
    })),
  );
}

/** A document with windows, opened on this device; made by `Respondent.join`. */
export class WindowedCollection {
  /**
   * @param {import("./client.js").Respondent} client
   * @param {import("../documents/document.js").Collection} collection
   * @param {string} base
   * @param {WindowStore} store
   * @param {Policy} [policy]
   */
  constructor(client, collection, base, store, policy) {
    [this.client, this.collection, this.base, this.store, this.policy] = [client, collection, base, store, policy];
    this.epsilon = asBudget(collection.epsilon).declared;
  }

  /** The date that decides the window. */
  today() {
    return dateAt(this.client.now(), this.collection.windows.zone);
  }

  /**
   * Report on the window of a day, today unless told, if this device may; call it once a day with the value.
   * @param {any} value the answer, or answers by the name of the question
   * @param {{day?: string}} [options] for a window that was missed while the device was off
   * @returns {Promise<{window: number, state: string, reason: string}>}
   */
  async tick(value, { day } = {}) {
    const { collection } = this;
    const answers = typeof value === "object" && value !== null ? value : { [collection.questions[0].name]: value };
    // Everything that can fail for a wrong value fails here, before coins are drawn and epsilon is spent.
    const [encoded, today] = [collection.encode(answers), this.today()];
    await this.flush();
    const window = windowOf(collection.windows, day ?? today);
    const { entry, reason } = await this.#change((kept) => this.#decided(kept, window, today, encoded));
    if (!entry) return { window, state: "skipped", reason };
    const { state, reason: why } = reason ? entry : await this.#send(entry);
    return { window, state, reason: why };
  }

  /** Send reports that wait; those whose window takes none any more expire, and stay charged. */
  async flush() {
    const { windows, id } = this.collection;
    const now = windowOf(windows, this.today());
    const waiting = await this.#change(({ entries }) => entries.filter((one) => one.collection === id && one.state === "pending"));
    for (const entry of waiting) {
      if (now - entry.window > windows.late) await this.#settle(entry, { state: "expired" });
      else await this.#send(entry);
    }
  }

  /** What the account has cost this device, in the run that ends today and in all, and when it reports next. */
  async view() {
    const { account, windows } = this.collection;
    const today = this.today();
    return this.#change((kept) => {
      const record = kept.accounts[this.#key]?.record ?? emptyRecord();
      // The slot of a device that has no secret yet is drawn when it first asks.
      const next = kept.secret ? nextSlot(this.#asked(kept, windowOf(windows, today), today, record)) : null;
      return { ...costs(account, windows, record, today), next: next === null ? null : firstDayOf(windows, next) };
    });
  }

  /** @param {Kept} kept @param {number} window @param {string} today @param {AccountRecord} record @returns {Asked} */
  #asked({ secret, born, days }, window, today, record) {
    const { windows, account, id } = this.collection;
    const slot = slotOf(secret, id, windows.per);
    return { windows, account, epsilon: this.epsilon, window, today, born, slot, before: false, record, policy: this.policy, days };
  }

  get #key() {
    return `${this.base} ${this.collection.account.name}`;
  }

  /** @template T @param {(kept: Kept) => T} decide @returns {Promise<T>} */
  #change(decide) {
    const now = this.client.now();
    return this.store.change((kept) => {
      // The later of both dates: a ledger must never seem older than it is, in whichever zone it is asked.
      kept.born ||= [dateAt(now, "utc"), dateAt(now, "local")].sort()[1];
      return decide(kept);
    });
  }

  /** @param {Kept} kept @param {number} window @param {string} today @param {any} value @returns {{entry?: Entry, reason: string}} */
  #decided(kept, window, today, value) {
    const { account, id } = this.collection;
    const known = this.#account(kept);
    kept.secret ||= hex(randomBytes(this.client.coins, 4));
    const before = kept.entries.find((one) => one.collection === id && one.window === window);
    if (before) return { entry: before, reason: "passed" };
    const reason = refusal(this.#asked(kept, window, today, known.record));
    if (reason) return { reason };
    const entry = this.#drawn(kept, window, value);
    known.record = charged(known.record, window, this.epsilon, account.run);
    known.charged[id] = written(plus(fraction(known.charged[id] ?? "0"), this.epsilon));
    // Stores of before had no days.
    const recent = (kept.days ?? []).filter(([day]) => daysApart(day, today) < KEPT_DAYS);
    kept.days = [...recent, [today, written(this.epsilon)]];
    // What is settled and before the largest window is `passed` anyway.
    const isNeeded = (/** @type {Entry} */ one) => one.collection !== id || one.window >= known.record.high || !SETTLED.includes(one.state);
    kept.entries = [...kept.entries.filter(isNeeded), entry];
    return { entry, reason: "" };
  }

  /** @param {Kept} kept @param {number} window @param {any} value @returns {Entry} */
  #drawn({ secret }, window, value) {
    const { id, epsilon, mechanism } = this.collection;
    const { member, payload } = mechanism.unpack(mechanism.privatizeOne(value, this.client.coins));
    return {
      ...{ collection: id, base: this.base, batch: batchIdOf(secret, id, window), member, report: hex(payload), window, epsilon },
      ...{ state: "pending", reason: "", invitation: "", row: null },
    };
  }

  /** The account in the ledger; a document that states other numbers for it is refused. @param {Kept} kept */
  #account(kept) {
    const { account, windows: { every, first, zone } } = this.collection;
    const terms = { ...account, every, first, zone };
    const known = (kept.accounts[this.#key] ??= { terms, record: emptyRecord(), charged: {} });
    const other = Object.keys(terms).find((name) => known.terms[name] !== terms[name]);
    if (other) throw new InvalidSpec(`account ${account.name}: ${other} differs from what this device knows of the account; nothing was drawn`);
    return known;
  }

  /** @param {Entry} entry @returns {Promise<Entry>} */
  async #send(entry) {
    const { change } = await this.client.attempt(entry);
    return change ? this.#settle(entry, /** @type {any} */ (change)) : entry;
  }

  /** @param {Entry} entry @param {Partial<Entry>} change @returns {Promise<Entry>} */
  #settle(entry, change) {
    return this.#change(({ entries }) => {
      const found = entries.find(({ batch }) => batch === entry.batch);
      return Object.assign(found ?? entry, change);
    });
  }
}
