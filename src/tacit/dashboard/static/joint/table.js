/** A table of two or three questions: shares as a heat map that is read like any table, and all numbers below it. */

import { h, scrolled, spoken } from "../page/dom.js";
import { interval, intervalName, label, percent } from "../page/format.js";

/** The most values of a third question for which all tables are shown side by side. */
const MOST_SLICES = 6;

/** @typedef {{name: string, labels: any[]}} Attribute */

/** How dark a cell is, by its part of the largest; the least still shows. @param {any} element @param {number} part */
export const shade = (element, part) =>
  element.style.setProperty("--shade", `${(3 + 57 * Math.max(0, part)).toFixed(1)}%`);

/** Numbers of answers; cells are in the order of all combinations, the last attribute fastest. @param {Attribute[]} attributes */
const sizes = (attributes) => attributes.map(({ labels }) => labels.length);

/** The share that is shown of a cell. @param {any} cell @param {string} mode @returns {number | null} */
const shareOf = ({ raw, consistent }, mode) => (mode === "raw" ? raw?.estimate : consistent) ?? null;

/** The interval of a consistent share, which holds the raw one. @param {any} cell */
const consistentRange = ({ consistent_low: low, consistent_high: high }) => interval({ low, high }, percent);

/** A cell in words, with its interval. @param {any} cell @param {Attribute[]} attributes @param {number} level */
function wordsOf({ values, raw, consistent, ...ends }, attributes, level) {
  const where = attributes.map(({ name }, a) => `${spoken(name)}: ${label(values[a])}`).join(", ");
  if (raw?.estimate === undefined || raw.estimate === null) return `${where}. No report says it directly.`;
  const wide = `${intervalName(level)} ${interval(raw, percent)}`;
  const made = consistent === null ? "" : `; consistent ${percent(consistent, raw.standard_error)}, ${consistentRange(ends)}`;
  return `${where}. Raw ${percent(raw.estimate, raw.standard_error)}, ${wide}${made}`;
}

/** What stands in a cell: the share, and how far it may be off. @param {any} cell @param {string} mode */
function figures(cell, mode) {
  const share = shareOf(cell, mode);
  const { low, high, standard_error: error } = cell.raw ?? {};
  if (share === null) return [h("span", { class: "soft" }, "–")];
  const known = mode === "raw" && typeof low === "number" && typeof high === "number";
  const off = known && h("small", {}, `± ${percent((high - low) / 2, error)}`);
  return [percent(share, error), off].filter(Boolean);
}

/** @typedef {{mode: string, level: number, most: number, at: number}} How `at` is the value of a third question */

/** One cell, the darker the more it holds. @param {any} cell @param {Attribute[]} attributes @param {How} how */
function heatCell(cell, attributes, { mode, level, most }) {
  const element = h("td", { title: wordsOf(cell, attributes, level) }, ...figures(cell, mode));
  shade(element, (shareOf(cell, mode) ?? 0) / most);
  return element;
}

/** One heat map. @param {any} table @param {How} how */
function heatTable({ attributes, cells }, how) {
  const { at } = how;
  const [rows, columns, deep = 1] = sizes(attributes);
  const place = (/** @type {number} */ i, /** @type {number} */ j) => cells[(i * columns + j) * deep + at];
  const [first, second, third] = attributes;
  const head = second.labels.map((/** @type {any} */ one) => h("th", { scope: "col" }, label(one)));
  const body = Array.from({ length: rows }, (_, i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, label(first.labels[i])),
      ...Array.from({ length: columns }, (_, j) => heatCell(place(i, j), attributes, how)),
    ),
  );
  const name = `${spoken(first.name)} ↓ · ${spoken(second.name)} →`;
  const caption = third ? `${spoken(third.name)}: ${label(third.labels[at])}` : "";
  const table = h(
    "table",
    { class: "heat-table" },
    h("caption", { class: caption ? null : "hidden-text" }, caption || `Shares by ${name}`),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "corner" }, name), ...head)),
    h("tbody", {}, ...body),
  );
  table.style.setProperty("--columns", String(columns));
  return table;
}

/** Which values of a third question are shown. @param {Attribute[]} attributes @param {number} chosen */
function slices([, , third], chosen) {
  if (!third) return [0];
  const all = third.labels.map((_, i) => i);
  return all.length <= MOST_SLICES ? all : [Math.min(chosen, all.length - 1)];
}

/**
 * A menu for the values of a third question that has many of them, or nothing.
 * @param {Attribute[]} attributes
 * @param {number} chosen
 * @param {(at: number) => void} choose
 */
function sliceMenu([, , third], chosen, choose) {
  if (!third || third.labels.length <= MOST_SLICES) return [];
  const options = third.labels.map((one, i) => h("option", { value: i }, label(one)));
  const menu = h("select", { id: "joint-slice", onchange: () => choose(Number(menu.value)) }, ...options);
  menu.value = String(chosen);
  return [h("div", { class: "least" }, h("label", { for: "joint-slice" }, `Where ${spoken(third.name)} is`), menu)];
}

/**
 * The heat maps of a table.
 * @param {any} table
 * @param {{mode: string, level: number, slice: number, choose: (at: number) => void}} how
 * @returns {any[]}
 */
export function heatTables(table, { mode, level, slice, choose }) {
  const { attributes, cells } = table;
  const most = Math.max(...cells.map((/** @type {any} */ cell) => shareOf(cell, mode) ?? 0), 1e-9);
  const shown = slices(attributes, slice).map((at) => heatTable(table, { mode, level, most, at }));
  const names = attributes.map((/** @type {Attribute} */ { name }) => spoken(name)).join(", ");
  const region = scrolled(`Shares of ${names}`, ...shown);
  region.classList.add("heat-tables");
  return [...sliceMenu(attributes, slice, choose), region];
}

/** All numbers, a line for every cell. @param {any} table @param {number} level */
export function cellTable({ attributes, cells }, level) {
  const names = attributes.map((/** @type {Attribute} */ { name }) => spoken(name));
  const head = (/** @type {string} */ name, /** @type {number} */ i) =>
    h("th", { scope: "col", class: i < names.length ? null : "right" }, name);
  const wide = intervalName(level);
  const heads = [...names, "Raw", wide, "Std. error", "Consistent", wide].map(head);
  const figure = (/** @type {any} */ share, /** @type {any} */ error) =>
    typeof share === "number" ? percent(share, error) : "–";
  const line = (/** @type {any} */ { values, raw, consistent, ...ends }) => {
    const { estimate, standard_error: error } = raw ?? {};
    const range = typeof raw?.low === "number" ? interval(raw, percent).replace(/^from /, "") : "–";
    const made = range === "–" ? range : consistentRange(ends).replace(/^from /, "");
    const numbers = [figure(estimate, error), range, figure(error, error), figure(consistent, error), made];
    return h(
      "tr",
      {},
      ...values.map((/** @type {any} */ value) => h("th", { scope: "row" }, label(value))),
      ...numbers.map((text) => h("td", { class: "right" }, text)),
    );
  };
  return h(
    "table",
    { class: "cells" },
    h("caption", { class: "hidden-text" }, "Every cell of the table with its interval"),
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...cells.map(line)),
  );
}
