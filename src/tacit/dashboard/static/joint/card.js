/** Questions that were asked together: any table of two or three of them, whether they are connected, which are most,
 * and made-up records that behave alike. */

import { modeSwitch } from "../cards/answers.js";
import { field } from "../page/inputs.js";
import { h, inLanguage, scrolled, spoken } from "../page/dom.js";
import { reports } from "../page/format.js";
import { Pairs } from "./pairs.js";
import { cellTable, heatTables } from "./table.js";
import { treePicture } from "./tree.js";
import { verdict } from "./verdict.js";
import { synthetic } from "./synthetic.js";

const INTROS = /** @type {Record<string, string>} */ ({
  joint:
    "Every respondent sent one noisy report on a few of the answers, which their device drew. Together the reports " +
    "tell how answers go with each other.",
  all_of:
    "Every respondent sent a noisy report on all answers at once, so the reports also tell how answers go with each " +
    "other.",
});
const FEW = "Too few reports so far.";
const QUICK = 10;
const MODE_NOTES = /** @type {Record<string, string>} */ ({
  raw: "Unbiased: right on average, so a small share may come out below zero. Point at a cell for its interval.",
  consistent:
    "Adjusted so that no share is negative and tables agree with each other. Biased, which the intervals allow for; " +
    "point at a cell for them and for the raw share.",
});

/** Whether tables of several questions can be asked of a collection. @param {any} document_ its document */
export const hasTables = ({ policy, mechanism, rows }) =>
  !rows && (policy === "joint" || (policy === "all_of" && mechanism.state === "joint"));

/** The card. */
export class JointCard {
  mode = "consistent";
  level = 0.95;
  slice = 0;
  turn = 0;
  /** @type {any} */
  table = undefined;
  /** @type {string[]} */
  attributes = [];
  note = h("p", { class: "soft" });
  remark = h("p", { class: "hint-box", hidden: true });
  pictures = h("div", { class: "stack" });
  numbers = scrolled("Numbers of the table");
  test = h("div", { class: "stack verdict", role: "status" });
  tree = h("div", {});
  based = h("span", { class: "soft number" });

  /**
   * @param {any} document_ the document of the collection
   * @param {(query: string, given: Record<string, any>) => Promise<any>} ask
   * @param {(path: string) => string} address where a file below the tables is
   */
  constructor({ questions, policy }, ask, address) {
    this.ask = ask;
    this.intro = INTROS[policy];
    this.names = questions.map((/** @type {any} */ { name }) => name);
    this.texts = new Map(questions.map((/** @type {any} */ { name, text }) => [name, inLanguage(text)]));
    this.attributes = this.names.slice(0, 2);
    this.modes = modeSwitch((mode) => this.choose(mode));
    this.menus = this.names.length > 2 ? [0, 1, 2] : [0, 1];
    this.menus = this.menus.map((place) => this.menu(place));
    this.pairs = new Pairs(this.names, (pair) => this.select(pair));
    this.details = h(
      "details",
      { ontoggle: () => this.tabulate() },
      h("summary", {}, "Table of these numbers"),
      this.numbers,
    );
    this.element = this.frame(synthetic(address));
  }

  /** @param {any} made the form for synthetic data */
  frame(made) {
    const labels = ["Rows", "Columns", "For each value of"];
    const fields = this.menus.map((menu, i) => field(labels[i], menu));
    const left = h("div", {}, this.remark, this.pictures, this.note);
    const second = h("div", {}, h("h3", {}, "What hangs together most"), this.tree);
    return h(
      "section",
      { class: "card", "aria-labelledby": "joint-title" },
      h("div", { class: "question-head" }, h("h2", { id: "joint-title" }, "Tables of several questions"), this.modes),
      h("p", { class: "soft" }, this.intro),
      h("div", { class: "pair" }, ...fields),
      h("div", { class: "halves plain table-and-test" }, left, this.test),
      this.details,
      this.names.length > 2 && h("div", { class: "halves" }, this.pairs.element, second),
      made,
      this.based,
    );
  }

  /** A menu of the questions. @param {number} place first, second or third */
  menu(place) {
    const none = place === 2 ? [h("option", { value: "" }, "no third question")] : [];
    const options = this.names.map((name) => h("option", { value: name, title: this.texts.get(name) }, spoken(name)));
    const menu = h("select", { id: `joint-${place}`, onchange: () => this.picked(place) }, ...none, ...options);
    menu.value = this.attributes[place] ?? "";
    return menu;
  }

  /** A menu was used: no question stands twice. @param {number} place */
  picked(place) {
    const wanted = this.menus.map((menu) => menu.value);
    const other = wanted.findIndex((name, i) => i !== place && name === wanted[place]);
    if (other >= 0) wanted[other] = this.attributes[place] ?? "";
    // Without a third question two are left, and where it took the place of another, one that is free comes back.
    for (const i of [0, 1]) wanted[i] ||= this.names.find((name) => !wanted.includes(name)) ?? "";
    this.select(wanted.filter(Boolean));
  }

  /** Show these questions. @param {string[]} attributes */
  select(attributes) {
    this.take(attributes);
    this.load();
  }

  /** @param {string[]} attributes */
  take(attributes) {
    this.attributes = attributes;
    this.slice = 0;
    this.menus.forEach((menu, i) => (menu.value = attributes[i] ?? ""));
    this.pairs.press(attributes);
  }

  /** @param {string} mode */
  choose(mode) {
    this.mode = mode;
    this.modes.press(mode);
    this.draw();
  }

  /** New reports: everything is asked again. @param {number} level */
  async update(level) {
    this.level = level;
    this.modes.press(this.mode);
    const [several, fresh] = [this.names.length > 2, this.turn === 0];
    // All pairs of a few questions are quickly compared, so that the card opens with the strongest connection.
    const first = several && fresh && this.names.length <= QUICK ? await this.overview() : undefined;
    if (first && this.turn === 0) this.take(first);
    await this.load();
    if (!several) return;
    if (!first) await this.overview();
    await this.grow();
  }

  /** @param {string} query @param {Record<string, any>} [given] */
  async answer(query, given = {}) {
    const found = await this.ask(query, { level: this.level, ...given }).catch((error) => ({ error }));
    return found.status && found.status !== "ok" ? { error: new Error(FEW) } : found;
  }

  /** The table and the test of the chosen questions. */
  async load() {
    const turn = (this.turn += 1);
    const { attributes } = this;
    const [table, test] = await Promise.all([
      this.answer("table", { attributes: attributes.join() }),
      this.answer("association", { attributes: attributes.slice(0, 2).join() }),
    ]);
    if (turn !== this.turn) return;
    this.table = table;
    this.draw();
    this.tabulate();
    const words = test.error && [h("p", { class: "soft" }, test.error.message)];
    this.test.replaceChildren(...(words ?? verdict(attributes.slice(0, 2), test)));
  }

  /** All pairs. @returns {Promise<string[] | undefined>} the strongest, if it is connected */
  async overview() {
    const { pairs, words, error } = await this.answer("associations");
    if (error) this.pairs.fail(error.message);
    else this.pairs.update(pairs, words);
    this.pairs.press(this.attributes);
    return pairs?.[0]?.dependent ? pairs[0].attributes : undefined;
  }

  async grow() {
    const found = await this.answer("tree");
    const room = this.tree.clientWidth || 480;
    this.tree.replaceChildren(
      found.error ? h("p", { class: "soft" }, found.error.message) : treePicture(found, room),
    );
  }

  /** Draw what was fetched last. */
  draw() {
    const { table, mode, level, slice } = this;
    if (!table) return;
    const problem = table.error?.message;
    const plain = table.coverage === "covered" && table.agrees !== false;
    const remark = problem ?? (plain ? "" : table.words);
    this.remark.hidden = !remark;
    this.remark.textContent = remark;
    this.details.hidden = this.note.hidden = Boolean(problem);
    if (problem) return this.pictures.replaceChildren();
    const choose = (/** @type {number} */ at) => {
      this.slice = at;
      this.draw();
    };
    this.pictures.replaceChildren(...heatTables(table, { mode, level, slice, choose }));
    this.note.textContent = `Shares of all respondents. ${MODE_NOTES[mode]}`;
    this.based.textContent = `From ${reports(table.n ?? 0)}.`;
    return undefined;
  }

  /** Many rows are made only for somebody who looks. */
  tabulate() {
    const shown = this.details.open && this.table?.cells;
    this.numbers.replaceChildren(...(shown ? [cellTable(this.table, this.level)] : []));
  }
}
