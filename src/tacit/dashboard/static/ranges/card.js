/** The card of a question for ranges: a histogram to drag over, the cumulative distribution, quantiles, and where
 * answers gather. Everything but the histogram is asked of the collector, one query each. */

import { holds, modeSwitch, numberTable, pushed, switchOf } from "../cards/answers.js";
import { h, inLanguage, scrolled } from "../page/dom.js";
import { count, interval, percent, reports, tooFew } from "../page/format.js";
import { methodMenu, noteOf } from "../page/methods.js";
import { EVERYTHING, Leaves, barsOf } from "./ordered.js";
import { Cumulative, Histogram } from "./charts.js";
import { Picker } from "./picker.js";
import { SHARES, heavyTable, quantileTable, thresholds } from "./tables.js";

const PAUSE = 150;
const MANY_BARS = 128;
const FEW_BARS = 64;
const ROOMY = 600;
const BANDS = /** @type {[string, string][]} */ ([
  ["pointwise", "Pointwise"],
  ["simultaneous", "Simultaneous"],
]);

/** @param {number} level */
const cases = (level) => `${Math.round(100 * level)} of 100 cases`;

/** What a band promises. @param {string} band @param {number} level */
const bandNote = (band, level) =>
  band === "simultaneous"
    ? `The whole true curve lies in the band in at least ${cases(level)}.`
    : `Each point of the true curve, by itself, lies in the band in ${cases(level)}.`;

/** The share of a range in words. @param {any} share @param {string} answers @param {number} level */
export function reading({ estimate, standard_error: error, low, high }, answers, level) {
  if (estimate === null) return ["not known yet", ` No report says anything about ${answers} so far.`];
  if (answers === EVERYTHING) return ["100 %", " of respondents, by definition: the range leaves nothing out."];
  const range = interval({ low, high, standard_error: error }, percent);
  const sure = low === null || high === null ? `; the interval is ${range}.` : `: ${range} in ${cases(level)}.`;
  return [percent(estimate, error), ` of respondents answer ${answers}${sure}`];
}

/** One question for ranges. */
export class RangeCard {
  mode = "consistent";
  band = "pointwise";
  level = 0.95;
  /** The last answer about the chosen range, and its words. @type {[any, string] | null} */
  last = null;
  waiting = 0;
  /** How often each query was put. @type {Record<string, number>} */
  turns = {};
  note = h("p", { class: "soft" });
  promise = h("p", { class: "soft" }, "Loading…");
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
    this.leaves = new Leaves(domain);
    this.picker = new Picker(this.leaves, question.name, () => this.moved());
    this.histogram = new Histogram(this.title, (first, last) => this.picker.choose(first, last));
    this.cumulative = new Cumulative(this.title);
    this.modes = modeSwitch((mode) => this.choose(mode));
    this.methods = methodMenu(`method-${question.name}`, process, true);
    this.bands = switchOf(BANDS, "What the band promises", (band) => this.chooseBand(band));
    this.threshold = thresholds(`threshold-${question.name}`, () => this.refresh("heavy"));
    this.quantiles = scrolled(`Quantiles: ${this.title}`);
    this.heavy = scrolled(`Where answers gather: ${this.title}`);
    this.numbers = scrolled(`Numbers: ${this.title}`);
    const summary = h("summary", {}, "Table of these numbers");
    this.details = h("details", { ontoggle: () => this.tabulate() }, summary, this.numbers);
    this.body = h("div", { class: "stack" }, this.exploring(), this.distribution(), this.details);
    const head = h("div", { class: "question-head" }, h("h2", {}, this.title), this.modes);
    this.element = h("section", { class: "card", "aria-label": this.title }, head, this.few, this.body, this.based);
    new ResizeObserver(() => this.align()).observe(this.histogram.element);
  }

  /** The histogram with the handles below it, and what the chosen range comes to. */
  exploring() {
    const { histogram, picker, figure, words, note, methods } = this;
    const hint = "Drag over the bars or move the handles to read the share of a range.";
    return h(
      "div",
      { class: "stack", role: "group", "aria-label": "Share of a range" },
      h("div", {}, histogram.element, picker.rail),
      h("p", { class: "soft" }, hint),
      h("div", { class: "range-row" }, picker.typed, h("p", { class: "reading", role: "status" }, figure, words)),
      methods,
      note,
    );
  }

  /** The curve, and two tables below it. */
  distribution() {
    const { cumulative, bands, promise, quantiles, heavy, threshold } = this;
    const least = h("label", { for: threshold.id }, "Shortest intervals with at least");
    const head = h("div", { class: "question-head" }, h("h3", {}, "Cumulative distribution"), bands);
    return h(
      "div",
      { class: "halves" },
      h("div", { class: "both" }, head, cumulative.element, promise),
      h("div", {}, h("h3", {}, "Quantiles"), quantiles),
      h("div", {}, h("h3", {}, "Where answers gather"), h("div", { class: "least" }, least, threshold), heavy),
    );
  }

  /** New numbers. @param {any} next @param {number} level */
  update(next, level) {
    [this.question, this.level] = [next, level];
    const empty = !next.rows.length;
    this.few.hidden = !empty;
    this.few.textContent = empty ? tooFew(next) : "";
    this.body.hidden = this.modes.hidden = empty;
    this.based.hidden = empty;
    if (empty) return;
    this.choose(this.mode);
    this.chooseBand(this.band);
    this.tabulate();
    for (const query of ["range", "quantiles", "heavy"]) this.refresh(query);
  }

  /** Raw or consistent. @param {string} mode */
  choose(mode) {
    const { question, histogram, leaves, picker } = this;
    this.mode = mode;
    this.modes.press(mode);
    this.read();
    const most = histogram.element.clientWidth < ROOMY ? FEW_BARS : MANY_BARS;
    const bars = barsOf(leaves, question.rows, mode, most);
    const each = bars[0].last - bars[0].first + 1;
    const adds = each > 1 ? ` Each bar adds up ${count(each)} neighbouring answers.` : "";
    this.methods.show(mode === "raw" ? "" : question.method, question.rows.length);
    this.note.textContent = `${noteOf(mode, question.method)}${adds}`;
    this.based.textContent = `From ${reports(question.n ?? 0)}. ${holds(mode, this.level)}${pushed(question)}`;
    histogram.draw(bars, leaves);
    histogram.choose(picker.low, picker.high);
    this.align();
  }

  /** Pointwise or simultaneous. @param {string} band */
  chooseBand(band) {
    this.band = band;
    this.bands.press(band);
    this.refresh("cdf");
  }

  /** The range was moved: show that at once, and ask when it rests. */
  moved() {
    this.histogram.choose(this.picker.low, this.picker.high);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.refresh("range"), PAUSE);
  }

  /** Put the handles below the bars. */
  align() {
    if (!this.histogram.chart) return;
    const [left, right] = this.histogram.margins(this.leaves.size);
    this.picker.rail.style.setProperty("--left", `${left}px`);
    this.picker.rail.style.setProperty("--right", `${right}px`);
  }

  /** Thousands of rows are made only for somebody who looks. */
  tabulate() {
    this.numbers.replaceChildren(...(this.details.open ? [numberTable(this.question, this.level)] : []));
  }

  /** What a query needs to be told. @param {string} query */
  given(query) {
    const { leaves, picker, band, threshold } = this;
    if (query === "range") return { low: leaves.ask(picker.low), high: leaves.ask(picker.high) };
    if (query === "quantiles") return { shares: SHARES.join() };
    return query === "cdf" ? { band } : { threshold: threshold.value };
  }

  /** Ask, and show the answer unless a later question has overtaken it. @param {string} query */
  async refresh(query) {
    const turn = (this.turns[query] = (this.turns[query] ?? 0) + 1);
    const chosen = this.leaves.words(this.picker.low, this.picker.high);
    const answer = await this.ask(query, this.given(query)).catch((error) => ({ error }));
    if (turn !== this.turns[query]) return;
    if (answer.error) this.fail(query, answer.error.message);
    else if (answer.status === "ok") this.show(query, answer, chosen);
  }

  /** The share of the chosen range: made monotone, so that ranges agree with each other, or raw. */
  read() {
    if (!this.last) return;
    const [{ share, raw, level }, chosen] = this.last;
    [this.figure.textContent, this.words.textContent] = reading(this.mode === "raw" ? raw : share, chosen, level);
  }

  /** An old answer must not stand beside a new error. @param {string} query @param {string} message */
  fail(query, message) {
    if (query === "range") this.last = null;
    if (query === "range") [this.figure.textContent, this.words.textContent] = ["", message];
    if (query === "quantiles") this.quantiles.replaceChildren(h("p", { class: "soft" }, message));
    if (query === "heavy") this.heavy.replaceChildren(h("p", { class: "soft" }, message));
    if (query !== "cdf") return;
    this.promise.textContent = message;
    this.cumulative.element.hidden = true;
  }

  /** @param {string} query @param {any} answer @param {string} chosen */
  show(query, answer, chosen) {
    const { leaves } = this;
    if (query === "range") this.last = [answer, chosen];
    if (query === "range") this.read();
    if (query === "quantiles") this.quantiles.replaceChildren(quantileTable(leaves, answer));
    if (query === "heavy") this.heavy.replaceChildren(heavyTable(leaves, answer));
    if (query !== "cdf") return;
    this.promise.textContent = bandNote(answer.band, answer.level);
    this.cumulative.element.hidden = false;
    this.cumulative.draw(answer, leaves);
  }
}
