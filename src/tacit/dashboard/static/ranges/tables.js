/** Quantiles, and where answers gather, as tables. */

import { h } from "../page/dom.js";
import { interval, intervalName, percent } from "../page/format.js";

const UNKNOWN = "not known yet";
const THRESHOLDS = [0.05, 0.1, 0.2, 0.3, 0.5];

/** The quantiles that are asked for. */
export const SHARES = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];

/** @param {string} caption @param {string[]} heads @param {string[][]} rows */
function table(caption, heads, rows) {
  const line = ([head, ...cells]) =>
    h("tr", {}, h("th", { scope: "row" }, head), ...cells.map((/** @type {string} */ cell) => h("td", {}, cell)));
  return h(
    "table",
    { class: "numbers wraps" },
    h("caption", { class: "hidden-text" }, caption),
    h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, ...rows.map(line)),
  );
}

/** Leaves in words, or that they are not known. @param {any} leaves @param {any} low @param {any} high */
function between(leaves, low, high) {
  const [first, last] = [leaves.place(low), leaves.place(high)];
  return first === null || last === null ? UNKNOWN : leaves.words(first, last);
}

/**
 * @param {import("./ordered.js").Leaves} leaves
 * @param {any} answer
 */
export function quantileTable(leaves, { quantiles, level }) {
  const rows = quantiles.map((/** @type {any} */ { share, value, low, high }) => [
    `${Math.round(100 * share)} %${share === 0.5 ? " (median)" : ""}`,
    between(leaves, value, value),
    between(leaves, low, high),
  ]);
  return table("Quantiles", ["Respondents", "Answer at most", intervalName(level)], rows);
}

/**
 * @param {import("./ordered.js").Leaves} leaves
 * @param {any} answer
 */
export function heavyTable(leaves, { intervals, level, threshold }) {
  if (!intervals.length) return h("p", { class: "soft" }, `No interval holds ${percent(threshold)} so far.`);
  const rows = intervals.map((/** @type {any} */ row) => [
    between(leaves, row.from, row.to),
    percent(row.estimate, row.standard_error).replace(" %", "\u00a0%"),
    interval(row, percent).replace(/^from /, ""),
  ]);
  return table("Where answers gather", ["Answers", "Share", intervalName(level)], rows);
}

/** A menu of shares. @param {string} id @param {() => void} changed */
export function thresholds(id, changed) {
  const options = THRESHOLDS.map((share) => h("option", { value: share }, `${100 * share} %`));
  const menu = h("select", { id, onchange: changed }, ...options);
  menu.value = "0.1";
  return menu;
}
