/**
 * Telemetry of an application that asks its user: on, local only or off, with everything that was sent to look at.
 * Local only draws and keeps the noisy report, for its owner to see. Going on sends nothing of before: `release` does.
 *
 * @typedef {"on" | "local" | "off"} Mode
 */

import { Respondent, storageHere } from "./client/client.js";
import { InvalidSpec } from "./errors.js";
import { AlreadyAnswered, HELD, receiptOf } from "./client/ledger.js";

const KEY = "tacit-telemetry";
/** @type {readonly Mode[]} */
export const MODES = ["on", "local", "off"];

/** The telemetry of one application on one device. */
export class Telemetry {
  /**
   * @param {object} [options]
   * @param {import("./client/ledger.js").Store} [options.storage] where the decision and the ledger are kept
   * @param {Respondent} [options.respondent] who draws and sends; with the same storage
   * @param {() => boolean} [options.refused] whether the browser itself says no
   */
  constructor({ storage = storageHere(), respondent, refused = saysNo } = {}) {
    this.storage = storage;
    this.refused = refused;
    // One attempt, as an application does not wait for its telemetry: what cannot be sent is pending.
    this.respondent = respondent ?? new Respondent({ storage, attempts: 1 });
  }

  /** What the user has decided; local only before that. @returns {Mode} */
  get mode() {
    if (this.refused()) return "off";
    const kept = this.storage.getItem(KEY);
    // A decision that cannot be read is no consent.
    return kept === null ? "local" : (MODES.find((mode) => mode === kept) ?? "off");
  }

  set mode(mode) {
    if (!MODES.includes(mode)) throw new InvalidSpec(`telemetry: mode must be one of ${MODES.join(", ")}`);
    this.storage.setItem(KEY, mode);
  }

  /**
   * Answer a collection as far as the user allows; null if that is not at all. A second time changes nothing.
   * @param {string} address
   * @param {Record<string, any>} answers
   * @param {import("./client/client.js").Options} [options]
   * @returns {Promise<import("./client/client.js").Receipt | null>}
   */
  async report(address, answers, options) {
    const { mode } = this;
    if (mode === "off") return null;
    try {
      if (mode === "on") return await this.respondent.answer(address, answers, options);
      return receiptOf(await this.respondent.prepare(address, answers, options));
    } catch (error) {
      if (error instanceof AlreadyAnswered) return error.receipt;
      throw error;
    }
  }

  /** Everything that was drawn on this device, sent or not, as it leaves it. */
  shown() {
    return this.respondent.store.read().entries.map(({ collection, title, epsilon, state, report, row, base }) => ({
      ...{ collection, title: title.en ?? Object.values(title)[0] ?? "", epsilon, state, report },
      ...{ row: row ?? null, server: base },
    }));
  }

  /** Send what was kept while it was local only; nothing unless the mode is on. */
  async release() {
    if (this.mode !== "on") return [];
    const held = this.respondent.store.read().entries.filter(({ state }) => state === HELD);
    const receipts = [];
    for (const { batch } of held) receipts.push(await this.respondent.release(batch));
    return receipts;
  }

  /** Send what waits for a network; nothing unless the mode is on. */
  async flush() {
    return this.mode === "on" ? this.respondent.flush() : [];
  }
}

/** Whether the browser carries a wish not to be tracked (Global Privacy Control, or Do Not Track before it). */
function saysNo() {
  const { globalPrivacyControl, doNotTrack } = /** @type {any} */ (globalThis.navigator ?? {});
  return globalPrivacyControl === true || doNotTrack === "1";
}
