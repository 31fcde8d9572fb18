/** What a query gave: a table with error bars in numbers, the same as a chart, and plans. */

import { switchOf } from "../cards/answers.js";
import { BarChart } from "../page/chart.js";
import { h, scrolled } from "../page/dom.js";
import { count, label, number } from "../page/format.js";

/** What stands in place of an estimate. @type {Record<string, [string, string]>} */
const MISSING = {
  insufficient_data: ["lost in noise", "Too few rows to tell: the count is not larger than its own noise."],
  no_data: ["no data", "No row meets the conditions."],
  below_minimum_cohort: ["too few rows", "Fewer rows than the minimum cohort meet the public conditions, or a few of them carry the measure."],
};

/** @param {any} item */
const isCell = (item) => typeof item === "object" && item !== null;

/** @param {any} cell */
const half = ({ low, high }) => (high - low) / 2;

/** A number that is known exactly. @param {number} value */
const exactly = (value) => new Intl.NumberFormat("en", { maximumSignificantDigits: 10 }).format(value);

/** An estimate and half its interval, or why there is none. @param {any} cell */
export function figure(cell) {
  if (cell.estimate === null) return MISSING[cell.status]?.[0] ?? cell.status;
  if (cell.status === "exact") return exactly(cell.estimate);
  const error = half(cell);
  return `${number(cell.estimate, error)} ± ${number(error, error)}`;
}

/** One cell of the table. @param {any} item */
function shown(item) {
  if (!isCell(item)) return h("th", { scope: "row" }, item === null ? h("i", {}, "missing") : label(item));
  const about = MISSING[item.status]?.[1];
  const exact = item.status === "exact" && h("small", {}, "exact");
  return h("td", { title: about }, h("span", { class: about ? "soft" : "" }, figure(item)), exact);
}

/** @param {any} answer @param {number} most */
function answerTable({ columns, rows }, most) {
  const heads = columns.map(({ name }) => h("th", { scope: "col" }, name));
  return h(
    "table",
    { class: columns[0]?.kind === "group" ? "numbers grouped" : "numbers" },
    h("caption", { class: "hidden-text" }, "The answer, with half of every interval"),
    h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows.slice(0, most).map((/** @type {any[]} */ row) => h("tr", {}, ...row.map(shown)))),
  );
}

/** @param {number} value */
const tick = (value) => new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(value);

/** Numbers as they are. */
const NUMBERS = {
  tick,
  figure: (/** @type {any} */ row) => figure(row),
  words: (/** @type {any} */ row) => figure(row),
};

/** The bars of one aggregate. @param {any} answer @param {number} place */
function bars({ columns, rows }, place) {
  const groups = columns.flatMap(({ kind }, i) => (kind === "group" ? [i] : []));
  return rows
    .filter((/** @type {any[]} */ row) => row[place].estimate !== null)
    .map((/** @type {any[]} */ row) => ({
      ...row[place],
      value: groups.map((i) => (row[i] === null ? "missing" : label(row[i]))).join(", ") || columns[place].name,
    }));
}

const MOST_ROWS = 500;

/** What the numbers mean. @param {any} answer */
function footer({ n, level, seconds, rows }) {
  const states = new Set(rows.flat().filter(isCell).map(({ status }) => status));
  const said = [
    `From ${count(n)} rows, in ${number(seconds, 0.01)} s.`,
    states.has("estimate") && `± holds the true number in ${number(100 * level, 100)} of 100 cases.`,
    states.has("exact") && "Numbers marked exact depend on public columns alone.",
    rows.length > MOST_ROWS && `The first ${MOST_ROWS} of ${count(rows.length)} rows are shown; the CSV file has all.`,
  ];
  return h("p", { class: "soft" }, said.filter(Boolean).join(" "));
}

/** The answer as a card. @param {any} answer @param {HTMLElement} download */
export function answerCard(answer, download) {
  const all = answer.columns.map((/** @type {any} */ { kind, name }, /** @type {number} */ i) => [String(i), name, kind]);
  const aggregates = all.filter((/** @type {string[]} */ [, , kind]) => kind === "aggregate");
  const chart = new BarChart("the answer", NUMBERS);
  const groups = answer.columns.filter((/** @type {any} */ { kind }) => kind === "group");
  const ordered = groups.every((/** @type {any} */ one) => one.ordered);
  const modes = switchOf(aggregates, "Aggregate in the chart", (place) => {
    modes.press(place);
    const drawn = bars(answer, Number(place));
    chart.element.hidden = !drawn.length;
    chart.draw(drawn, ordered);
  });
  modes.hidden = aggregates.length < 2;
  const region = scrolled("Table of the answer", answerTable(answer, MOST_ROWS));
  const empty = h("p", { class: "soft" }, "No row meets the conditions.");
  const title = h("h2", { id: "answer-title" }, "Answer");
  const head = h("div", { class: "question-head" }, title, h("div", { class: "row" }, modes, download));
  const body = answer.rows.length ? [chart.element, region] : [empty];
  const element = h("section", { class: "card", "aria-labelledby": "answer-title" }, head, ...body, footer(answer));
  const draw = () => answer.rows.length && aggregates.length && modes.querySelector("button").click();
  return { element, draw };
}

/** What a plan calls its ways, and what is added to their names. @type {[string, string][]} */
const METHODS = [
  ["hiocap", "random levels of trees, of few private columns at once"],
  ["hio", "random levels of trees over all private columns"],
  ["levels", "random levels of trees"],
  ["quadtree", "random levels of one tree over all private columns"],
  ["mg", "all private values together"],
  ["sco", "every private column by itself, at a share of epsilon"],
];
const MORE = /** @type {[string, string][]} */ ([
  ["_weighted", ", drawn as the planned queries need them"],
  ["_consistent", ", put together by least squares"],
  ["_haar", ", put together by differences of neighbours"],
]);

/** @param {string} method */
function methodWords(method) {
  const base = METHODS.find(([name]) => method.startsWith(name))?.[1];
  const more = MORE.filter(([name]) => method.includes(name)).map(([, words]) => words);
  return base ? `Collected as ${base}${more.join("")}.` : "";
}

/** @param {any} step */
function stepRow(step) {
  const error = step.expected_standard_error;
  const said = step.exact ? "exact" : error === null ? "not known" : `about ${number(error, error)}`;
  const cells = [said, count(step.rows), `${number(100 * step.volume, 100 * step.volume)} %`];
  const numbers = [step.boxes, step.nodes, step.levels].map(count);
  const all = [...cells, ...numbers].map((text) => h("td", {}, text));
  return h("tr", {}, h("th", { scope: "row" }, step.aggregate), ...all);
}

/** The plan of a query as a card. @param {any} answer */
export function planCard({ plan }) {
  const heads = ["Aggregate", "Standard error", "Rows", "Private share", "Boxes", "Nodes", "Levels"];
  const table = h(
    "table",
    { class: "numbers plan" },
    h("caption", { class: "hidden-text" }, "How every aggregate will be answered"),
    h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...plan.slice(0, MOST_ROWS).map(stepRow)),
  );
  const method = plan[0]?.mechanism ?? "";
  const words = methodWords(method);
  const note =
    "Rows meet the public conditions; the private share is that of all combinations of private values. Standard errors " +
    "are those to expect if private values were spread evenly; no report was looked at.";
  return h(
    "section",
    { class: "card", "aria-labelledby": "plan-title" },
    h("div", { class: "question-head" }, h("h2", { id: "plan-title" }, "Plan"), h("span", { class: "pill" }, method)),
    words && h("p", {}, words),
    scrolled("Steps of the plan", table),
    h("p", { class: "soft" }, note),
  );
}
