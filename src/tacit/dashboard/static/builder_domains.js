/** The builder's editors of a question's answers: which are possible, and what is wanted of them. */

import { check, field, select, text } from "./builder_inputs.js";
import { h } from "./dom.js";
import { alphabetOf, completed, fitting } from "./draft.js";

/** @typedef {import("./builder_inputs.js").Form} Form */

/** What can be answered. */
export const KINDS = [
  ["categories", "One of several choices"],
  ["ordered", "Choices in an order, such as never to always"],
  ["booleans", "Yes or no"],
  ["integers", "A whole number"],
  ["buckets", "A number, asked as ranges"],
  ["pair", "Two of these in an order, together"],
  ["items", "Any number of things from a list"],
  ["text", "A short text, written freely"],
  ["bits", "Several things to tick, or a string of bits"],
];
const HISTOGRAM = ["histogram", "The share of every answer"];
const RANGES = ["ranges", "Ranges and quantiles"];
const FREQUENT = ["heavy_hitters", "The most frequent values (heavy hitters)"];
const TASKS = /** @type {Record<string, string[][]>} */ ({
  ordered: [HISTOGRAM, RANGES],
  integers: [HISTOGRAM, ["mean", "The mean"], RANGES, FREQUENT],
  buckets: [HISTOGRAM, RANGES],
  pair: [["ranges", "Ranges of both together: rectangles"]],
  items: [
    ["items", "The most frequent items"],
    ["itemsets", "The most frequent itemsets: what occurs together"],
  ],
  text: [FREQUENT],
  bits: [HISTOGRAM, FREQUENT],
});
const HINTS = /** @type {Record<string, string>} */ ({
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
const IN_BYTES = "bytes: accents, other scripts and emoji take two to four";
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
  const k = whole(form, form.model, "k", "How many to look for", { min: 1, max: 1024, read: Number });
  return [
    labels(form, question, "Things on the list, one per line", PUBLIC),
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
    field("Characters", select(form, question, "alphabet", idOf(question, "alphabet"), ALPHABETS)),
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
    return [h("div", { class: "pair" }, ...ends.map(([name, label]) => whole(form, question, name, label)))];
  }
  if (kind === "bits") {
    const hint = "Up to 64. Many are asked as a string of 0 and 1, of which only the frequent ones can be found.";
    return [whole(form, question, "length", "How many things to tick", { min: 1, max: 64, hint })];
  }
  const choices = labels(form, question, "Choices, one per line");
  if (kind === "ordered") return [choices];
  const other = text(form, question, "other", idOf(question, "other"));
  return [choices, field("Name of a last choice for everything else (may stay empty)", other)];
}

/** What is wanted of the answers, where there is a choice. @param {Form} form @param {any} question */
export function task(form, question) {
  const tasks = TASKS[question.kind];
  if (!tasks) return null;
  if (!tasks.some(([name]) => name === question.task)) [[question.task]] = tasks;
  const menu = select(form, question, "task", idOf(question, "task"), tasks);
  return field("What you want to know", menu, question.kind === "pair" ? undefined : HINTS[question.task]);
}
