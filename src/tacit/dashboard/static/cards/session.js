/** The session of a shuffled collection: how far it is, who is waited for, what its reports keep, and its buttons. */

import { call, notify } from "../page/api.js";
import { byId, h } from "../page/dom.js";
import { count } from "../page/format.js";

/** What a state of a session is called, its colour, and what happens in it. @type {Record<string, [string, string, string]>} */
const STATES = {
  none: ["Not opened", "warn", "The first session opens as soon as all shufflers can be reached."],
  DRAFT: ["Being signed", "warn", "Every shuffler has to sign the session before anybody can answer."],
  PUBLISHED: ["Being opened", "warn", "All parties have signed; the shufflers are told to begin."],
  COLLECTING: ["Open", "good", "Respondents send sealed reports to the shufflers. Nothing has reached the collector."],
  SHUFFLING: ["Shuffling", "warn", "The shufflers agree on the uploads and mix them."],
  VERIFIED: ["Counting", "warn", "Mixed reports have arrived, all checks have passed, and they are counted."],
  RELEASED: ["Released", "good", "The reports are counted, made-up ones are taken out again, and the shufflers erase their data."],
  ABORTED: ["Given up", "still", "Nothing of this session was counted."],
};

const CLOSING = "No more reports are taken; the shufflers are told to begin.";

/** @param {any} status */
const stateOf = ({ state, closing }) => {
  const [name, colour, words] = STATES[state] ?? [state, "warn", ""];
  return state === "COLLECTING" && closing ? ["Closing", "warn", CLOSING] : [name, colour, words];
};

/** How many sealed reports all shufflers have, as far as they say. @param {any} status */
function uploadsOf({ uploads, n, respondents }) {
  const each = Object.values(uploads ?? {});
  if (!each.length) return { least: respondents ?? n ?? 0, each };
  return { least: Math.min(...each.map((one) => one ?? 0)), each };
}

/** @param {string} name @param {any} value */
const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

/** @param {string} name "shuffler_2" */
const spokenParty = (name) => name.replace("_", " ");

/** Three epsilons that grow with what an adversary holds. @param {any} status @param {string} delta as the document writes it */
function triple({ epsilon, minimum }, delta) {
  const rows = [
    ["The collector alone", epsilon.collector, `if ${count(minimum)} honest people take part`],
    ["The collector and all other respondents", epsilon.others, "honest made-up reports alone hide somebody"],
    ["The collector and the shufflers", epsilon.local, "always; this is what a device counts as spent"],
  ];
  const line = ([whom, figure, when]) =>
    h("tr", {}, h("th", { scope: "row" }, whom, h("small", { class: "soft" }, when)), h("td", { class: "right" }, figure));
  return h(
    "table",
    { class: "triple" },
    h("caption", { class: "hidden-text" }, "Epsilon by what an adversary holds"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Against"), h("th", { scope: "col", class: "right" }, `Epsilon, δ = ${delta}`))),
    h("tbody", {}, ...rows.map(line)),
  );
}

/** The card of a session. */
export class SessionCard {
  state = h("span", { class: "pill" });
  words = h("p", {});
  note = h("p", { class: "problem", hidden: true });
  meter = h("progress", { class: "meter", "aria-label": "Sealed reports until a session can be released" });
  facts = h("dl", { class: "pairs" });
  epsilons = h("div", {});
  transcript = h("a", { class: "button" }, "Transcript");

  /**
   * @param {string} id the collection
   * @param {any} terms the document's
   * @param {boolean} admin
   * @param {() => void} changed what to do when the session was changed
   */
  constructor(id, terms, admin, changed) {
    this.id = id;
    this.terms = terms;
    this.admin = admin;
    this.changed = changed;
    /** @type {any} */
    this.status = undefined;
    this.transcript.href = `/c/${id}/transcript.json`;
    this.dialog = byId("confirm-session");
    this.dialog.addEventListener("close", () => this.dialog.returnValue === "yes" && this.act("session/close", "The session is closed."));
    this.closer = h("button", { type: "button", id: "close-session", onclick: () => this.ask() }, "Close the session");
    this.opener = h(
      "button",
      { type: "button", id: "open-session", onclick: () => this.act("session", "Another session is being opened.") },
      "Open another session",
    );
    this.buttons = h("div", { class: "row" }, this.transcript, this.closer, this.opener);
    const head = h("div", { class: "row" }, h("h2", { id: "session-title" }, "Session of the shuffle"), this.state);
    const parts = [head, this.words, this.note, this.meter, this.facts, this.epsilons, this.buttons];
    this.element = h("section", { class: "card", id: "session", "aria-labelledby": "session-title" }, ...parts);
  }

  /** @param {any} status as the collector tells */
  update(status) {
    if (JSON.stringify(status) === JSON.stringify(this.status)) return;
    this.status = status;
    const [name, colour, words] = stateOf(status);
    this.state.className = `pill ${colour}`;
    this.state.textContent = name;
    this.words.textContent = words;
    this.note.hidden = !status.note;
    this.note.textContent = status.blames ? `${status.note} (${spokenParty(status.blames)})` : status.note;
    this.#count(status);
    this.epsilons.replaceChildren(triple(status, this.terms.delta));
    this.transcript.hidden = status.state !== "RELEASED";
    this.closer.hidden = !this.admin || status.state !== "COLLECTING" || status.closing;
    const ended = status.state === "ABORTED" || (status.state === "RELEASED" && !status.awaited.length);
    this.opener.hidden = !this.admin || !ended;
    this.buttons.hidden = [this.transcript, this.closer, this.opener].every(({ hidden }) => hidden);
  }

  /** @param {any} status */
  #count(status) {
    const { least, each } = uploadsOf(status);
    const needed = status.minimum + this.terms.spot_checks;
    this.meter.hidden = status.state !== "COLLECTING";
    this.meter.max = needed;
    this.meter.value = Math.min(least, needed);
    const uneven = new Set(each).size > 1;
    const told = each.map((one, i) => `shuffler ${i + 1}: ${one === null ? "no answer" : count(one)}`).join(", ");
    const until = status.closes && new Date(1000 * status.closes).toISOString().slice(0, 16).replace("T", " ");
    const waiting = (status.awaited ?? []).map(spokenParty).join(", ");
    this.facts.replaceChildren(
      pair(each.length ? "Sealed reports" : "Respondents", `${count(least)} of at least ${count(needed)}`),
      ...(uneven ? [pair("By shuffler", told)] : []),
      ...(status.state === "COLLECTING" && until ? [pair("Closes by itself", `${until} UTC`)] : []),
      ...(waiting && status.state !== "COLLECTING" ? [pair("Waiting for", waiting)] : []),
      ...(status.rows ? [pair("Rows opened", `${count(status.opened_rows)} of ${count(status.rows)}, ${count(status.fakes ?? this.terms.fakes)} of them made up`)] : []),
      ...(status.alarms?.length ? [pair("Alarms", status.alarms.join("; "))] : []),
      ...(status.session ? [pair("Session", h("code", { class: "id" }, status.session))] : []),
    );
  }

  ask() {
    const { least } = uploadsOf(this.status);
    const needed = this.status.minimum + this.terms.spot_checks;
    byId("session-words").textContent =
      least < needed
        ? `Only ${count(least)} of the ${count(needed)} reports that are needed are in. If it is closed now, the session is given up, and nothing is counted; respondents can take part in another one.`
        : `${count(least)} sealed reports are in. The shufflers begin, and no more reports are taken.`;
    this.dialog.showModal();
  }

  /** @param {string} path @param {string} done */
  async act(path, done) {
    try {
      await call("POST", `collections/${this.id}/${path}`, {});
      notify(done);
    } catch (error) {
      notify(/** @type {Error} */ (error).message);
    }
    this.changed();
  }
}
