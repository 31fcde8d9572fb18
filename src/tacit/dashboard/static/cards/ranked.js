/** Most frequent values, items or itemsets: a ranked list with intervals and the probability that each is noise. */

import { pushed } from "./answers.js";
import { BarChart } from "../page/chart.js";
import { h, inLanguage, scrolled } from "../page/dom.js";
import { count, interval, intervalName, percent, reports } from "../page/format.js";
import { lookup } from "./lookup.js";
import { network } from "./network.js";

const DOUBTFUL = 0.05;
const HOW_MANY = [8, 16, 32, 64, 128];

/** A value in words; an empty text has a name. @param {any} value */
const name = (value) => (Array.isArray(value) ? value.join(" + ") : value === "" ? "(empty)" : String(value));

/** The probability that something nobody holds looks as frequent. @param {number} chance */
const noiseText = (chance) => (chance < 0.0005 ? "under 0.1 %" : `${(100 * chance).toFixed(chance < 0.1 ? 1 : 0)} %`);

/** Rows by the share that is shown, with their ranks. @param {any[]} rows */
const ranked = (rows) =>
  rows.toSorted((a, b) => b.estimate - a.estimate).map((row, i) => ({ ...row, rank: i + 1 }));

/** @param {any[]} rows with their ranks @param {string} what @param {number} level */
function rankedTable(rows, what, level) {
  const line = (/** @type {any} */ row) =>
    h(
      "tr",
      {},
      h("td", {}, count(row.rank)),
      h("th", { scope: "row" }, name(row.value)),
      h("td", {}, percent(row.estimate, row.standard_error)),
      h("td", {}, interval(row, percent).replace(/^from /, "")),
      h("td", {}, noiseText(row.noise)),
    );
  const heads = ["Rank", what, "Share", intervalName(level), "Probability of noise"];
  return h(
    "table",
    { class: "ranked" },
    h("caption", { class: "hidden-text" }, `${what}, most frequent first`),
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map(line)),
  );
}

/** Rows of an answer, of a plan or of a search, alike. @param {any} row */
const rowOf = ({ value, raw, noise, noise_probability: chance, ...cell }) => ({
  value,
  ...(raw ?? cell),
  noise: noise ?? chance ?? 0,
});

/** One question for the most frequent. */
export class RankedCard {
  turn = 0;
  level = 0.95;
  note = h("p", { class: "soft" });
  notes = h("ul", { class: "remarks" });
  based = h("span", { class: "soft number" });
  picture = h("div", {});
  status = h("p", { class: "soft", role: "status" });
  summary = h("summary", {});

  /**
   * @param {any} question as it is answered now
   * @param {any} domain its wire form
   * @param {(query: string, given: Record<string, any>) => Promise<any>} ask
   */
  constructor(question, domain, ask) {
    this.ask = ask;
    this.title = inLanguage(question.text);
    this.what = { items: "Item", itemsets: "Itemset" }[/** @type {string} */ (question.task)] ?? "Value";
    this.isSearch = question.task === "heavy_hitters";
    this.chart = new BarChart(this.title);
    this.numbers = scrolled(`Ranking: ${this.title}`);
    this.rest = scrolled(`May be noise: ${this.title}`);
    this.doubtful = h("details", {}, this.summary, this.rest);
    this.k = h("select", { id: `k-${question.name}`, onchange: () => this.search() });
    this.k.append(...HOW_MANY.map((k) => h("option", { value: k, selected: k === 32 }, count(k))));
    const many = h("div", { class: "least" }, h("label", { for: this.k.id }, "At most"), this.k);
    const listed = domain.kind !== "strings";
    this.isListed = listed;
    this.body = h("div", { class: "stack" }, this.chart.element, this.picture, this.note, this.numbers, this.doubtful);
    const head = h("div", { class: "question-head" }, h("h2", {}, this.title), this.isSearch && listed && many);
    const named = this.isSearch && lookup(question.name, ask, rankedValues);
    const parts = [head, this.status, this.body, this.notes, named, this.based];
    this.element = h("section", { class: "card", "aria-label": this.title }, ...parts);
  }

  /** New numbers. @param {any} next @param {number} level */
  update(next, level) {
    this.level = level;
    const cases = `${Math.round(100 * level)} of 100 cases`;
    this.based.textContent = `From ${reports(next.n ?? 0)}. Intervals are adjusted for selection: of those listed, they hold the true share in ${cases}.${pushed(next)}`;
    this.body.hidden = !this.isListed;
    if (!this.isListed) this.status.textContent = "Hashed texts are not found by themselves; look them up below.";
    else if (this.isSearch && next.status === "ok") this.search();
    else this.show(next.rows.map(rowOf), { detectable: next.detectable, notes: next.notes ?? [] });
  }

  /** Look for the most frequent values, which takes a while. */
  async search() {
    const turn = (this.turn += 1);
    this.status.textContent = "Searching…";
    const answer = await this.ask("top", { k: this.k.value }).catch((error) => ({ error }));
    if (turn !== this.turn) return;
    if (answer.error) this.fail(answer.error.message);
    else if (answer.status === "ok") this.show(answer.values.map(rowOf), { words: answer.about, notes: answer.flags });
  }

  /** An old answer must not stand below a new error. @param {string} message */
  fail(message) {
    this.show([], { notes: [] });
    this.status.textContent = message;
  }

  /** Rows that may be noise, for whoever wants to see them. @param {any[]} rows */
  doubt(rows) {
    this.doubtful.hidden = !rows.length;
    this.summary.textContent = `${count(rows.length)} more, which may be noise`;
    this.rest.replaceChildren(...(rows.length ? [rankedTable(rows, this.what, this.level)] : []));
  }

  /** @param {any[]} unsorted @param {{detectable?: number | null, words?: string, notes: string[]}} about */
  show(unsorted, { detectable, words, notes }) {
    const rows = ranked(unsorted);
    const sure = rows.filter(({ noise }) => noise <= DOUBTFUL);
    this.status.textContent = sure.length ? "" : "Nothing stands out from the noise.";
    this.chart.element.hidden = !sure.length;
    if (sure.length) this.chart.draw(sure.map((row) => ({ ...row, value: name(row.value) })));
    const drawn = rows.some(({ value }) => Array.isArray(value)) && network(sure, this.element.clientWidth);
    this.picture.replaceChildren(...(drawn ? [drawn] : []));
    this.numbers.replaceChildren(...(sure.length ? [rankedTable(sure, this.what, this.level)] : []));
    this.numbers.hidden = !sure.length;
    this.doubt(rows.filter(({ noise }) => noise > DOUBTFUL));
    const least = detectable ? `A share below ${percent(detectable)} cannot be told from noise here.` : "";
    this.note.textContent = words ?? least;
    this.notes.replaceChildren(...notes.map((one) => h("li", {}, sentence(one))));
    this.notes.hidden = !notes.length;
  }
}

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

/** Values that were looked up. @param {any[]} values @param {number} level */
function rankedValues(values, level) {
  const line = (/** @type {any} */ row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name(row.value)),
      h("td", {}, percent(row.estimate, row.standard_error)),
      h("td", {}, interval(row, percent).replace(/^from /, "")),
    );
  const heads = ["Value", "Share", intervalName(level)];
  return h(
    "table",
    { class: "numbers wraps" },
    h("caption", { class: "hidden-text" }, "Shares of the values that were looked up"),
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...values.map(line)),
  );
}
