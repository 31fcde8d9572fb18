/** An adaptive plan: its rounds with their progress, the one that is open, and a button that closes it by hand. */

import { call, notify } from "../page/api.js";
import { byId, h } from "../page/dom.js";
import { count, pill } from "../page/format.js";

const GOING =
  "Every round asks other people, and the next one is made from what this one finds. A round closes by itself when " +
  "its reports are in; the same link always leads to the round that is open.";

/** How many rounds a plan has at most; short lists need fewer. */
const MOST_ROUNDS = /** @type {Record<string, number>} */ ({ svim: 3, svsm: 5 });

/** What rounds ask for, by collection: a published document never changes. @type {Map<string, string>} */
const asked = new Map();

/** What a mechanism on sets asks for. @param {any} mechanism */
function wordsOf({ kind, candidates, size }) {
  const sets = candidates.some((/** @type {any[]} */ items) => items.length > 1);
  const choices = `${count(candidates.length || size)} ${sets ? "combinations" : "things"}`;
  return kind === "padded"
    ? `One of the ${choices} in question that is on a list, to count them`
    : `How many of the ${choices} in question are on a list`;
}

/** Find out what rounds ask for. @param {any[]} rounds @returns {Promise<void>} */
async function learn(rounds) {
  for (const { id } of rounds.filter((one) => !asked.has(one.id))) {
    const { mechanism } = (await call("GET", `collections/${id}`)).document;
    asked.set(id, wordsOf(mechanism));
  }
}

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

/** @param {string} method */
const following = (method) =>
  h("li", { class: "later" }, h("span", {}, `More rounds follow, at most ${MOST_ROUNDS[method] ?? "a few"} in all.`));

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
    const parts = [title, this.words, this.rounds, this.buttons];
    this.element = h("section", { class: "card", "aria-labelledby": "plan-title" }, ...parts);
  }

  /** @returns {any} the round that takes reports, or the last one */
  get current() {
    return this.plan.rounds.find((/** @type {any} */ round) => round.id === this.plan.current);
  }

  /** @param {any} plan as the collector tells */
  async update(plan) {
    this.plan = plan;
    this.draw();
    await learn(plan.rounds).catch(() => {});
    if (plan === this.plan) this.draw();
  }

  draw() {
    const { plan } = this;
    const more = !plan.finished && plan.rounds.length < (MOST_ROUNDS[plan.method] ?? Infinity);
    const rows = plan.rounds.map((/** @type {any} */ round) => line(round, asked.get(round.id) ?? "", this.id));
    this.rounds.replaceChildren(...rows, ...(more ? [following(plan.method)] : []));
    this.words.textContent = plan.finished ? "All rounds are closed; what they found is below." : GOING;
    this.buttons.hidden = plan.finished;
    this.survey.href = this.address.replace(this.id, plan.current);
    this.survey.textContent = `Open the survey of round ${this.current.round}`;
  }

  ask() {
    const { round, reports, target } = this.current;
    const rough = reports < target ? " Fewer reports make a rougher answer." : "";
    byId("advance-words").textContent =
      `Round ${round} has ${count(reports)} of the ${count(target)} reports it waits for.${rough} ` +
      "It cannot be opened again.";
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
