/** The respondent's side of the survey page: open a collection, draw the noisy report once, hold it, send it. */

import { Collection, Respondent, SystemCoins } from "/js/tacit.js";

/** The ledger's word for a report that was drawn and shown, and that its owner has not agreed to send. */
const HELD = "held";

/** Whether this page may remember anything, without which noise could be drawn twice. */
export function canRemember() {
  try {
    localStorage.setItem("tacit-probe", "1");
    localStorage.removeItem("tacit-probe");
    return true;
  } catch {
    return false;
  }
}

/** A real collection, on this device. */
export class Participation {
  /** @param {string} id */
  constructor(id) {
    this.address = new URL(`/c/${id}`, location.href).href;
    this.client = new Respondent({ attempts: 2 });
    this.id = id;
    addEventListener("pagehide", () => this.client.beacon());
  }

  /** The document, checked against the address. @returns {Promise<any>} */
  async open() {
    this.collection = await this.client.open(this.address);
    return this.collection;
  }

  /** The session that takes sealed reports now, verified; it throws where reports cannot be sealed. @returns {Promise<any>} */
  session() {
    return this.client.session(this.address, { collection: this.collection });
  }

  /** Whether the report that was sealed and sent took part in the shuffle. @returns {Promise<any>} */
  async check() {
    try {
      return await this.client.check(this.entry().batch);
    } catch (error) {
      return { error: /** @type {Error} */ (error).message };
    }
  }

  /** What this device has for the collection, or for an earlier round of the same plan. @returns {any} */
  entry() {
    const once = this.collection?.planId ?? this.id;
    return this.entries().findLast(({ collection, plan }) => collection === this.id || plan === once);
  }

  /** @returns {any[]} */
  entries() {
    return this.client.store.read().entries;
  }

  /**
   * Perturb once and remember; nothing is sent.
   * @param {Record<string, any>} answers
   * @param {string} invitation
   * @param {Record<string, any>} [row] the public columns that go along as they are
   */
  draw(answers, invitation, row) {
    return this.client.prepare(this.address, answers, { collection: this.collection, invitation, row });
  }

  /** Send the report that was shown. @returns {Promise<any>} */
  async send() {
    const entry = this.entry();
    await (entry.state === HELD ? this.client.release(entry.batch) : this.client.flush());
    return this.entry();
  }

  /** What was spent: reports that never left this device cost nothing. */
  ledger() {
    const { collections: rows, total } = this.client.ledger();
    return { rows, total };
  }

  /** What collections that ask again and again have cost, by account. @returns {Promise<any[]>} */
  accounts() {
    // Where a browser cannot keep accounts, none was charged.
    return this.client.accounts().catch(() => []);
  }
}

/** A draft, tried out: noise is drawn as it would be, nothing is stored and nothing is sent. */
export class Preview {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    /** @type {any} */
    this.kept = undefined;
  }

  async open() {
    const reply = await fetch(`/c/${this.id}/preview.json`, { credentials: "same-origin" });
    if (!reply.ok) throw new Error("the draft cannot be shown");
    this.collection = await Collection.read(await reply.text());
    return this.collection;
  }

  entry() {
    return this.kept;
  }

  /** @param {Record<string, any>} answers @param {string} _ @param {Record<string, any>} [row] */
  draw(answers, _, row) {
    const { id, epsilon, mechanism } = this.collection;
    const { member, payload } = mechanism.unpack(
      mechanism.privatizeOne(this.collection.encode(answers), new SystemCoins()),
    );
    const report = Array.from(payload, (/** @type {number} */ byte) => byte.toString(16).padStart(2, "0")).join("");
    this.kept = { collection: id, epsilon, member, report, batch: "", row: this.collection.checkRow(row), state: HELD };
    return this.kept;
  }

  async send() {
    this.kept.state = "preview";
    return this.kept;
  }

  ledger() {
    return { rows: [], total: 0 };
  }

  async accounts() {
    return [];
  }
}
