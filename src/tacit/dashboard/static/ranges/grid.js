/** The card of a question for ranges of several ordered attributes together: a heat map of the first two, and
 * the share of any rectangle, chosen with two handles for every attribute or by dragging over the picture. */

import { holds, modeSwitch, numberTable } from "../cards/answers.js";
import { h, inLanguage, scrolled } from "../page/dom.js";
import { reports, tooFew } from "../page/format.js";
import { HeatMap } from "./heat_map.js";
import { methodMenu, noteOf } from "../page/methods.js";
import { EVERYTHING, Leaves } from "./ordered.js";
import { reading } from "./card.js";
import { Picker } from "./picker.js";

const PAUSE = 150;

/** Text as one value of a list with commas. @param {string} text */
const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

/** How many leaves the first node of an attribute stands for. @param {Leaves} leaves @param {any} label its label */
function widthOf(leaves, label) {
  for (let width = 2; width <= leaves.size; width += 1) {
    if (label === `${leaves.label(0)} … ${leaves.label(width - 1)}`) return width;
  }
  return 1;
}

/** One question for rectangles. */
export class GridCard {
  mode = "consistent";
  level = 0.95;
  waiting = 0;
  turn = 0;
  note = h("p", { class: "soft" });
  based = h("span", { class: "soft number" });
  figure = h("span", { class: "big" });
  words = h("span", {});
  few = h("p", { class: "soft" });

  /**
   * @param {any} question as it is answered now
   * @param {any} domain its wire form
   * @param {(query: string, given: Record<string, any>) => Promise<any>} ask
   * @param {(method: string) => void} process ask for the shares by another method of post-processing
   */
  constructor(question, domain, ask, process) {
    this.question = question;
    this.ask = ask;
    this.title = inLanguage(question.text);
    this.leaves = domain.attributes.map((/** @type {any} */ one) => new Leaves(one));
    this.names = domain.attributes.map((/** @type {any} */ { name }) => name);
    this.pickers = this.leaves.map(
      (/** @type {Leaves} */ one, /** @type {number} */ a) =>
        new Picker(one, `${question.name}-${a}`, () => this.moved(), this.names[a]),
    );
    this.modes = modeSwitch((mode) => this.choose(mode));
    this.methods = methodMenu(`method-${question.name}`, process, false);
    const [leaves, names] = [this.leaves.slice(0, 2), this.names.slice(0, 2)];
    this.map = new HeatMap(this.title, leaves, names, (low, high) => this.pick(low, high));
    this.numbers = scrolled(`Numbers: ${this.title}`);
    const summary = h("summary", {}, "Table of these numbers");
    this.details = h("details", { ontoggle: () => this.tabulate() }, summary, this.numbers);
    this.body = h("div", { class: "stack" }, ...this.exploring(), this.methods, this.note, this.details);
    const head = h("div", { class: "question-head" }, h("h2", {}, this.title), this.modes);
    this.element = h("section", { class: "card", "aria-label": this.title }, head, this.few, this.body, this.based);
  }

  /** The picture, the handles, and what the chosen rectangle comes to. */
  exploring() {
    const rails = this.pickers.map((/** @type {Picker} */ { rail, typed }, /** @type {number} */ a) =>
      h("div", { class: "rail-row", role: "group", "aria-label": this.names[a] }, h("b", {}, this.names[a]), rail, typed),
    );
    const hint = "Drag over the picture or move the handles to read the share of a rectangle.";
    return [
      this.map.element,
      h("p", { class: "soft" }, hint),
      h("div", { class: "rails" }, ...rails),
      h("p", { class: "reading", role: "status" }, this.figure, this.words),
    ];
  }

  /** New numbers. @param {any} next @param {number} level */
  update(next, level) {
    [this.question, this.level] = [next, level];
    const empty = !next.rows.length;
    this.few.hidden = !empty;
    this.few.textContent = empty ? tooFew(next) : "";
    this.body.hidden = this.modes.hidden = this.based.hidden = empty;
    if (empty) return;
    this.choose(this.mode);
    this.tabulate();
    this.refresh();
  }

  /** Raw or consistent. @param {string} mode */
  choose(mode) {
    const { question, map, pickers } = this;
    this.mode = mode;
    this.modes.press(mode);
    this.methods.show(mode === "raw" ? "" : question.method, question.rows.length);
    const over = this.names.length > 2 ? ` The picture adds up over ${this.names[2]}.` : "";
    const always =
      question.method === "agreed"
        ? "The share of a chosen rectangle takes answers to be even inside these cells, and is biased."
        : "The share of a chosen rectangle is always the unbiased one.";
    this.note.textContent = `${noteOf(mode, question.method)}${over} ${always}`;
    this.based.textContent = `From ${reports(question.n ?? 0)}. ${holds(mode, this.level)}`;
    map.choose(pickers.map(({ low }) => low), pickers.map(({ high }) => high));
    map.draw(this.grid());
  }

  /** The rows as a grid of the first two attributes; shares of a third one are added up. */
  grid() {
    const { rows } = this.question;
    const labels = (/** @type {number} */ a) => new Set(rows.map((/** @type {any} */ { value }) => value[a]));
    const counts = [...this.names.keys()].map((a) => labels(a).size);
    const [shape, deep] = [counts.slice(0, 2), counts[2] ?? 1];
    const cells = Array.from({ length: shape[0] * shape[1] }, (_, i) => {
      const parts = rows.slice(i * deep, (i + 1) * deep).map((/** @type {any} */ row) => row[this.mode] ?? row.raw);
      const estimate = parts.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.estimate, 0);
      return deep === 1 ? parts[0] : { estimate, standard_error: null };
    });
    return { shape, cells, widths: shape.map((_, a) => widthOf(this.leaves[a], rows[0].value[a])) };
  }

  /** A rectangle was dragged. @param {number[]} low @param {number[]} high */
  pick(low, high) {
    low.forEach((one, a) => this.pickers[a].choose(one, high[a]));
  }

  /** Show the rectangle at once, and ask when it rests. */
  moved() {
    this.map.choose(this.pickers.map(({ low }) => low), this.pickers.map(({ high }) => high));
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.refresh(), PAUSE);
  }

  /** Many rows are made only for somebody who looks. */
  tabulate() {
    this.numbers.replaceChildren(...(this.details.open ? [numberTable(this.question, this.level)] : []));
  }

  /** The rectangle in words. */
  chosen() {
    const parts = this.pickers.map(({ leaves, low, high }, a) => [this.names[a], leaves.words(low, high)]);
    const bound = parts.filter(([, words]) => words !== EVERYTHING);
    return bound.length ? bound.map(([name, words]) => `${name} ${words}`).join(" and ") : EVERYTHING;
  }

  async refresh() {
    const turn = (this.turn += 1);
    const ends = (/** @type {"low" | "high"} */ end) =>
      this.pickers.map((picker) => quoted(picker.leaves.ask(picker[end]))).join();
    const chosen = this.chosen();
    const answer = await this.ask("rectangle", { low: ends("low"), high: ends("high") }).catch((error) => ({ error }));
    if (turn !== this.turn) return;
    if (answer.error) [this.figure.textContent, this.words.textContent] = ["", answer.error.message];
    else if (answer.status === "ok") {
      [this.figure.textContent, this.words.textContent] = reading(answer.share, chosen, answer.level);
    }
  }
}
