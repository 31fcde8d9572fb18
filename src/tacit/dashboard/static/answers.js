/** The answer to one question: a chart or a figure, raw against consistent, and the same numbers as a table. */

import { BarChart } from "./chart.js";
import { h, inLanguage } from "./dom.js";
import { count, label, number, percent } from "./format.js";

const MODES = /** @type {[string, string][]} */ ([
  ["consistent", "Consistent"],
  ["raw", "Raw"],
]);
const NOTES = /** @type {Record<string, string>} */ ({
  consistent: "Adjusted so that no share is negative and all add up to 100 %. Easier to read, slightly biased.",
  raw: "Unbiased: right on average, so a small share may come out below zero. Use these for sums and tests.",
});

/** @param {any} unit @param {any} cell @param {string} name */
function shown(unit, cell, name) {
  if (!cell) return "";
  return unit === "share" ? percent(cell[name], cell.standard_error) : number(cell[name], cell.standard_error);
}

/** @param {any} question @param {number} level */
function table({ rows, unit }, level) {
  const twice = rows.some((/** @type {any} */ { consistent }) => consistent);
  const interval = `${Math.round(100 * level)} % interval`;
  const heads = ["Answer", "Raw", interval, "Std. error", ...(twice ? ["Consistent", interval] : [])];
  const range = (/** @type {any} */ cell) =>
    cell ? `${shown(unit, cell, "low")} to ${shown(unit, cell, "high")}` : "";
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

/** @param {(mode: string) => void} choose */
function modeSwitch(choose) {
  const buttons = MODES.map(([mode, name]) =>
    h("button", { type: "button", "data-mode": mode, onclick: () => choose(mode) }, name),
  );
  return h("div", { class: "switch", role: "group", "aria-label": "How shares are shown" }, ...buttons);
}

/**
 * The card of one question.
 * @param {any} first the question as it is answered now
 */
export function answerCard(first) {
  const title = inLanguage(first.text);
  const chart = new BarChart(title);
  const note = h("p", { class: "soft" });
  const figure = h("div", {});
  const numbers = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers: ${title}` });
  const based = h("span", { class: "soft number" });
  let mode = "consistent";
  /** @type {any} */
  let question = first;
  const draw = () => drawInto({ question, mode, chart, note, figure });
  const choose = (/** @type {string} */ next) => {
    mode = next;
    for (const button of toggle.children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
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
    details,
    based,
  );
  return {
    element,
    /** @param {any} next @param {number} level */
    update(next, level) {
      question = next;
      const both = next.rows.some((/** @type {any} */ { consistent }) => consistent);
      toggle.hidden = !both;
      details.hidden = !next.rows.length;
      based.textContent = `From ${count(next.n ?? 0)} reports. Intervals hold the true number in ${Math.round(100 * level)} of 100 cases.`;
      numbers.replaceChildren(table(next, level));
      choose(both ? mode : "raw");
    },
  };
}

/** @param {any} parts */
function drawInto({ question, mode, chart, note, figure }) {
  const { rows, unit } = question;
  if (!rows.length) {
    note.textContent = "Too few reports on this question so far.";
    return figure.replaceChildren();
  }
  if (unit !== "share") {
    note.textContent = "Unbiased: right on average.";
    return figure.replaceChildren(...rows.map((/** @type {any} */ { value, raw }) => mean(label(value), raw)));
  }
  note.textContent = NOTES[mode];
  if (chart.element.parentNode !== figure) figure.replaceChildren(chart.element);
  return chart.draw(rows.map((/** @type {any} */ row) => ({ value: row.value, ...(row[mode] ?? row.raw) })));
}

/** A number with its interval. @param {string} name @param {any} cell */
function mean(name, { estimate, low, high, standard_error: error }) {
  const show = (/** @type {number} */ value) => number(value, error);
  return h(
    "p",
    {},
    h("span", { class: "big" }, show(estimate)),
    h("span", { class: "soft" }, `  ${name}, from ${show(low)} to ${show(high)}`),
  );
}
