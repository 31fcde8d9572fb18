/** An adaptive plan: its rounds with their progress, the one that is open, and a button that closes it by hand. */

import { call, notify } from "./api.js";
import { byId, h } from "./dom.js";
import { count, pill } from "./format.js";

const ITEMS = [
  "One thing of everybody's list, to find the frequent ones",
  "How many of the frequent things are on a list",
  "One of the frequent things on a list, to count them",
];
/** What the rounds of a plan ask for. */
const ROUNDS = /** @type {Record<string, string[]>} */ ({
  svim: ITEMS,
  svsm: [
    ...ITEMS,
    "How many of the likely combinations are on a list",
    "One of the likely combinations on a list, to count them",
  ],
});

/** @param {any} round @param {string} words @param {string} here the collection of this page */
function line({ id, round, state, reports, target }, words, here) {
  const name = `Round ${round}`;
  const title = id === here ? h("b", {}, name) : h("a", { href: `/dashboard/collections/${id}` }, name);
  const value = Math.min(reports, target);
  const label = `Reports of round ${round}`;
  return h(
    "li",
    { class: state === "published" ? "now" : null, "aria-current": state === "published" ? "step" : null },
    h("div", { class: "row" }, title, pill(state)),
    words && h("span", {}, words),
    h("progress", { class: "meter", max: target, value, "aria-label": label }),
    h("small", { class: "soft number" }, `${count(reports)} of ${count(target)} reports`),
  );
}

/** @param {number} round @param {string} words */
const waiting = (round, words) =>
  h("li", { class: "later" }, h("div", { class: "row" }, h("b", {}, `Round ${round}`), h("span", { class: "pill still" }, "Later")), h("span", {}, words));

/** The card of a plan. */
export class PlanCard {
  rounds = h("ol", { class: "rounds" });
  words = h("p", { class: "soft" });
  survey = h("a", { class: "button" }, "Open the survey");

  /**
   * @param {string} id the collection of this page
   * @param {string} address of its survey
   * @param {boolean} admin
   * @param {() => void} advanced what to do when a round was closed
   */
  constructor(id, address, admin, advanced) {
    this.id = id;
    this.address = address;
    this.advanced = advanced;
    /** @type {any} */
    this.plan = undefined;
    this.dialog = byId("confirm-advance");
    this.dialog.addEventListener("close", () => this.dialog.returnValue === "yes" && this.advance());
    this.button = h("button", { type: "button", id: "advance", onclick: () => this.ask() }, "Advance now");
    this.buttons = h("div", { class: "row" }, this.survey, admin && this.button);
    const title = h("h2", { id: "plan-title" }, "Rounds");
    this.element = h("section", { class: "card", "aria-labelledby": "plan-title" }, title, this.words, this.rounds, this.buttons);
  }

  /** @returns {any} the round that takes reports, or the last one */
  get current() {
    return this.plan.rounds.find((/** @type {any} */ round) => round.id === this.plan.current);
  }

  /** @param {any} plan as the collector tells */
  update(plan) {
    this.plan = plan;
    const all = ROUNDS[plan.method] ?? [];
    const later = plan.finished ? [] : all.slice(plan.rounds.length);
    this.rounds.replaceChildren(
      ...plan.rounds.map((/** @type {any} */ round) => line(round, all[round.round - 1], this.id)),
      ...later.map((words, i) => waiting(plan.rounds.length + i + 1, words)),
    );
    this.words.textContent = plan.finished
      ? "All rounds are closed; what they found is below."
      : "Every round asks other people, and the next one is made from what this one finds. A round closes by itself when its reports are in; the same link always leads to the round that is open.";
    this.buttons.hidden = plan.finished;
    this.survey.href = this.address.replace(this.id, plan.current);
    this.survey.textContent = `Open the survey of round ${this.current.round}`;
  }

  ask() {
    const { round, reports, target } = this.current;
    const rough = reports < target ? " Fewer reports make a rougher answer." : "";
    byId("advance-words").textContent =
      `Round ${round} has ${count(reports)} of the ${count(target)} reports it waits for.${rough} It cannot be opened again.`;
    this.dialog.showModal();
  }

  async advance() {
    try {
      const plan = await call("POST", `collections/${this.id}/advance`, {});
      notify(plan.finished ? "The last round is closed." : `Round ${plan.rounds.length} is open.`);
      this.update(plan);
      this.advanced();
    } catch (error) {
      notify(/** @type {Error} */ (error).message);
    }
  }
}
