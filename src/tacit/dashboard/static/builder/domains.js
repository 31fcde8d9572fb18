/** The builder's editors of a question's answers: which are possible, and what is wanted of them. */

import { check, field, select, text } from "../page/inputs.js";
import { h } from "../page/dom.js";
import { OPTIONAL, alphabetOf, completed, fitting, isAdaptive, isOptional } from "./draft.js";

/** @typedef {import("../page/inputs.js").Form} Form */

/** What can be answered. */
export const KINDS = [
  ["categories", "One of several choices"],
  ["items", "Tick all that apply"],
  ["ordered", "A scale, never to always"],
  ["integers", "A number"],
  ["booleans", "Yes or no"],
  ["text", "A word, written freely"],
  ["buckets", "A number, asked as ranges"],
  ["pair", "Two numbers or scales together"],
  ["bits", "A string of bits"],
];
const HISTOGRAM = ["histogram", "The share of every answer"];
const RANGES = ["ranges", "Ranges and quantiles"];
const FREQUENT = ["heavy_hitters", "The most frequent values"];
const TASKS = /** @type {Record<string, string[][]>} */ ({
  ordered: [HISTOGRAM, RANGES],
  integers: [HISTOGRAM, ["mean", "The mean"], RANGES, FREQUENT],
  buckets: [HISTOGRAM, RANGES],
  pair: [["ranges", "Ranges of both together: rectangles"]],
  items: [
    ["shares", "The share of every thing"],
    ["items", "The most frequent items"],
    ["itemsets", "The most frequent itemsets: what occurs together"],
  ],
  text: [FREQUENT],
  bits: [HISTOGRAM, FREQUENT],
});
const HINTS = /** @type {Record<string, string>} */ ({
  shares: "Every respondent is asked about one of the things, drawn at random, with all of epsilon.",
  ranges: "The share of any range, the cumulative distribution and quantiles.",
  items: "Asked in up to 3 rounds, each of other people; the next round is made from what the last one found.",
  itemsets: "Asked in up to 5 rounds, each of other people; the next round is made from what the last one found.",
  heavy_hitters: "Finds values that nobody has listed beforehand, where enough people hold them.",
});
const ALPHABETS = [
  ["lower", "Letters a to z, in lower case"],
  ["printable", "What an English keyboard writes"],
  ["bytes", "Any text, in any language"],
  ["own", "Characters that I list"],
];
const PUBLIC = "The list is public: it is in the document that everybody gets.";
const SHOWN = "Shown to respondents above its answers.";
const EMPTY = "Capitals are written small where there are no capitals. Whoever writes nothing counts as an empty text.";
const IN_BYTES = "bytes: accents, other scripts and emoji take two to four";
const FEWER = "Nothing else is possible here while people may decline: whoever declines has no value.";
const PARTS = KINDS.filter(([kind]) => ["ordered", "integers", "buckets"].includes(kind));

/** @param {any} question @param {string} name */
const idOf = ({ key }, name) => `${name}-${key}`;

/** @param {Form} form @param {any} question @param {string} name @param {string} label @param {any} [rest] */
const whole = (form, question, name, label, { hint, ...rest } = /** @type {any} */ ({})) =>
  field(label, text(form, question, name, idOf(question, name), { type: "number", step: 1, ...rest }), hint);

/** @param {Form} form @param {any} question @param {string} label @param {string} [hint] */
const labels = (form, question, label, hint) =>
  field(label, text(form, question, "labels", idOf(question, "labels"), { tag: "textarea" }), hint);

/** @param {Form} form @param {any} question @returns {any[]} */
function buckets(form, question) {
  const edges = field(
    "Edges of the ranges",
    text(form, question, "edges", idOf(question, "edges"), { inputmode: "decimal" }),
    "For example 0, 1000, 2500, 5000. A number belongs to the range that begins at it.",
  );
  return [
    edges,
    check(form, question, "openBelow", "Also ask for less than the first"),
    check(form, question, "openAbove", "Also ask for the last and more"),
  ];
}

/** @param {Form} form @param {any} question @returns {any[]} */
function itemsOf(form, question) {
  const most = whole(form, question, "most", "At most so many per person (may stay empty)", { min: 1 });
  const k = isAdaptive(question) && whole(form, form.model, "k", "How many to look for", { min: 1, max: 1024, read: Number });
  return [
    labels(form, question, "Things to tick, one per line", PUBLIC),
    h("div", { class: "pair" }, most, k),
  ];
}

/** @param {Form} form @param {any} question @returns {any[]} */
function texts(form, question) {
  const fits = h("output", { class: "fits" });
  const explain = () => {
    const longest = fitting(alphabetOf(question));
    const unit = question.alphabet === "bytes" ? IN_BYTES : "characters";
    fits.textContent = longest ? `At most ${longest} ${unit}.` : "List the characters first.";
  };
  const told = { ...form, changed: () => (explain(), form.changed()) };
  explain();
  const length = whole(told, question, "textLength", "Longest text", { min: 1, max: 63 });
  length.append(fits);
  return [
    field("Characters", select(form, question, "alphabet", idOf(question, "alphabet"), ALPHABETS), EMPTY),
    question.alphabet === "own" &&
      field(
        "All characters, in any order",
        text(told, question, "characters", idOf(question, "characters"), { spellcheck: "false" }),
        "For example 0123456789- for telephone numbers.",
      ),
    length,
  ];
}

/** Two attributes. @param {Form} form @param {any} question @returns {any[]} */
const pair = (form, question) =>
  completed(question).parts.map((/** @type {any} */ part, /** @type {number} */ i) =>
    h(
      "fieldset",
      { class: "question-card" },
      h("legend", {}, ["First", "Second", "Third"][i]),
      h(
        "div",
        { class: "pair" },
        field("Short name", text(form, part, "name", idOf(part, "name"), { maxlength: 40 }), SHOWN),
        field("Answer", select(form, part, "kind", idOf(part, "kind"), PARTS)),
      ),
      ...domain(form, part),
    ),
  );

/** The fields of a question's domain. @param {Form} form @param {any} question @returns {any[]} */
export function domain(form, question) {
  const { kind } = question;
  if (kind === "pair") return pair(form, question);
  if (kind === "items") return itemsOf(form, question);
  if (kind === "text") return texts(form, question);
  if (kind === "buckets") return buckets(form, question);
  if (kind === "booleans") return [];
  if (kind === "integers") {
    const ends = [["low", "From"], ["high", "To"], ["step", "In steps of"]];
    return [h("div", { class: "pair small" }, ...ends.map(([name, label]) => whole(form, question, name, label)))];
  }
  if (kind === "bits") {
    const hint = "1 to 64. Many are asked as a string of 0 and 1, of which only the frequent ones can be found.";
    return [whole(form, question, "length", "How many bits", { min: 1, max: 64, hint })];
  }
  const choices = labels(form, question, "Choices, one per line");
  if (kind === "ordered") return [choices];
  const other = text(form, question, "other", idOf(question, "other"));
  return [choices, field("Name of a last choice for everything else (may stay empty)", other)];
}

/** Whether the question may be declined. @param {Form} form @param {any} question @returns {any[]} */
export function declining(form, question) {
  if (!OPTIONAL.includes(question.kind)) return [];
  const box = check({ ...form, changed: () => form.redraw() }, question, "optional", "People may decline to answer");
  box.querySelector("input").id = idOf(question, "optional");
  const hint = "Declining is an answer too: it is reported with the same noise, and its share is shown.";
  const called = isOptional(question) && field("What it is called", text(form, question, "declined", idOf(question, "declined"), { maxlength: 100 }), hint);
  return [box, called];
}

/** What is wanted of the answers, where there is a choice. @param {Form} form @param {any} question */
export function task(form, question) {
  // Means and ranges would have to leave out whoever declines.
  const tasks = isOptional(question) ? TASKS[question.kind]?.slice(0, 1) : TASKS[question.kind];
  if (!tasks) return null;
  if (!tasks.some(([name]) => name === question.task)) [[question.task]] = tasks;
  const menu = select(form, question, "task", idOf(question, "task"), tasks);
  const fewer = tasks.length < TASKS[question.kind].length ? FEWER : "";
  const hint = question.kind === "pair" ? "" : `${HINTS[question.task] ?? ""} ${fewer}`.trim();
  return field("What you want to know", menu, hint || undefined);
}
