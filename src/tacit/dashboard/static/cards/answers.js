/** The answer to one question: a chart or a figure, raw against consistent, and the same numbers as a table. */

import { BarChart, MOST_BARS } from "../page/chart.js";
import { h, inLanguage, scrolled } from "../page/dom.js";
import { interval, intervalName, label, number, percent, reports, significant, tooFew } from "../page/format.js";
import { methodMenu, noteOf } from "../page/methods.js";

/** How shares can be shown. */
const MODES = /** @type {[string, string][]} */ ([
  ["consistent", "Consistent"],
  ["raw", "Raw"],
]);
/** What the intervals of shown values promise. @param {string} mode @param {number} level */
export const holds = (mode, level) =>
  mode === "raw"
    ? `Intervals hold the true number in ${Math.round(100 * level)} of 100 cases.`
    : `Intervals allow for the bias: they hold the true share in at least ${Math.round(100 * level)} of 100 cases.`;

/** How far forged reports could push an answer. @param {any} question */
export const pushed = ({ influence, unit }) => {
  if (!influence) return "";
  const [what, most] = unit === "share" ? ["a share", percent(influence.coalition)] : ["it", significant(influence.coalition)];
  return ` If ${percent(influence.coalition_share)} of them were forged, ${what} could move by at most ${most}.`;
};

/** @param {any} unit @param {any} cell @param {string} name */
function shown(unit, cell, name) {
  if (!cell) return "";
  return unit === "share" ? percent(cell[name], cell.standard_error) : number(cell[name], cell.standard_error);
}

/** The numbers of a question as a table. @param {any} question @param {number} level */
export function numberTable({ rows, unit }, level) {
  const twice = rows.some((/** @type {any} */ { consistent }) => consistent);
  const wide = intervalName(level);
  const heads = ["Answer", "Raw", wide, "Std. error", ...(twice ? ["Consistent", wide] : [])];
  const range = (/** @type {any} */ cell) =>
    cell ? interval(cell, unit === "share" ? percent : number).replace(/^from /, "") : "";
  const line = (/** @type {any} */ { value, raw, consistent }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, label(value)),
      ...[shown(unit, raw, "estimate"), range(raw), shown(unit, raw, "standard_error")].map((text) =>
        h("td", {}, text),
      ),
      ...(twice ? [shown(unit, consistent, "estimate"), range(consistent)].map((text) => h("td", {}, text)) : []),
    );
  return h(
    "table",
    { class: "numbers" },
    h("caption", { class: "hidden-text" }, "The same numbers as in the chart"),
    h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map(line)),
  );
}

/**
 * Buttons of which one is pressed: `press(name)` says which.
 * @param {[string, string][]} modes
 * @param {string} label
 * @param {(mode: string) => void} choose
 */
export function switchOf(modes, label, choose) {
  const buttons = modes.map(([mode, name]) =>
    h("button", { type: "button", "data-mode": mode, onclick: () => choose(mode) }, name),
  );
  const press = (/** @type {string} */ mode) =>
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.mode === mode)));
  return Object.assign(h("div", { class: "switch", role: "group", "aria-label": label }, ...buttons), { press });
}

/** @param {(mode: string) => void} choose */
export const modeSwitch = (choose) => switchOf(MODES, "How shares are shown", choose);

/** Domains whose answers come in an order that means something. */
const ORDERED = ["ordered", "integers", "buckets"];

/** Whether answers are shown in their order; whoever declined comes last. @param {any} domain */
const isOrdered = ({ kind, domain }) => ORDERED.includes(kind === "optional" ? domain.kind : kind);

/**
 * The card of one question.
 * @param {any} first the question as it is answered now
 * @param {any} domain the wire form of its domain
 * @param {(method: string) => void} process ask for the shares by another method of post-processing
 * @param {(query: string, given: Record<string, any>) => Promise<any>} ask
 */
export function answerCard(first, domain, process, ask) {
  const title = inLanguage(first.text);
  const chart = new BarChart(title);
  const note = h("p", { class: "soft" });
  const figure = h("div", {});
  const numbers = scrolled(`Numbers: ${title}`);
  const based = h("span", { class: "soft number" });
  const methods = methodMenu(`method-${first.name}`, process, isOrdered(domain));
  let mode = "consistent";
  /** @type {any} */
  let question = first;
  let level = 0.95;
  const ordered = isOrdered(domain);
  /** The largest answers, where not all are drawn: their intervals allow for having been picked. @type {any} */
  let largest = null;
  const draw = () => drawInto({ question, mode, chart, note, figure, ordered, largest });
  const findLargest = async () => {
    largest = null;
    const asked = question;
    if (ordered || question.task !== "histogram" || question.rows.length <= MOST_BARS) return;
    const found = await ask("largest", { k: MOST_BARS }).catch(() => null);
    if (asked !== question || found?.status !== "ok") return;
    largest = found;
    draw();
  };
  const choose = (/** @type {string} */ next) => {
    mode = next;
    toggle.press(mode);
    if (question.rows.length) methods.show(mode === "raw" ? "" : question.method, question.rows.length);
    based.hidden = !question.rows.length;
    based.textContent = `From ${reports(question.n ?? 0)}. ${holds(mode, level)}${pushed(question)}`;
    draw();
  };
  const toggle = modeSwitch(choose);
  const details = h("details", {}, h("summary", {}, "Table of these numbers"), numbers);
  const element = h(
    "section",
    { class: "card", "aria-label": title },
    h("div", { class: "question-head" }, h("h2", {}, title), toggle),
    figure,
    note,
    based,
    details,
    methods,
  );
  return {
    element,
    /** @param {any} next @param {number} nextLevel */
    update(next, nextLevel) {
      [question, level] = [next, nextLevel];
      const both = next.rows.some((/** @type {any} */ { consistent }) => consistent);
      toggle.hidden = !both;
      details.hidden = !next.rows.length;
      numbers.replaceChildren(numberTable(next, level));
      choose(both ? mode : "raw");
      findLargest();
    },
  };
}

/** @param {any} parts */
function drawInto({ question, mode, chart, note, figure, ordered, largest }) {
  const { rows, unit } = question;
  if (!rows.length) {
    note.textContent = tooFew(question);
    return figure.replaceChildren();
  }
  if (unit !== "share") {
    note.textContent = "Unbiased: right on average.";
    return figure.replaceChildren(...rows.map((/** @type {any} */ { value, raw }) => mean(label(value), raw)));
  }
  note.textContent = noteOf(mode, question.method);
  if (chart.element.parentNode !== figure) figure.replaceChildren(chart.element);
  if (largest) {
    const cell = mode === "raw" ? "raw" : "share";
    chart.draw(largest.rows.map((/** @type {any} */ row) => ({ value: row.value, ...row[cell] })), true);
    chart.note.textContent =
      `The ${largest.rows.length} largest of ${rows.length} answers, adjusted for selection: wider intervals, since noise ` +
      "helped them into the list. The table has all answers, each by itself.";
    return;
  }
  const bars = rows.map((/** @type {any} */ row) => ({ value: row.value, ...(row[mode] ?? row.raw) }));
  chart.draw(bars, ordered);
}

/** A number with its interval. @param {string} name @param {any} cell */
function mean(name, cell) {
  return h(
    "p",
    {},
    h("span", { class: "big" }, number(cell.estimate, cell.standard_error)),
    h("span", { class: "soft" }, `  ${name}, ${interval(cell, number)}`),
  );
}
