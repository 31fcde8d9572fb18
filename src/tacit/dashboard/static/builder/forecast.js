/** How precise the answers of a draft will be, by which mechanism, and why that one. */

import { h } from "../page/dom.js";
import { count } from "../page/format.js";

const MOST_OPTIONS = 10;
const ROUGH = 0.1;
/** What most surveys want to know a share to. */
const WANTED = 0.05;
/** From here on an interval says nothing: a share is between 0 and 100 %. */
const HOPELESS = 0.5;

/** How adaptive tasks go on. */
const ROUNDS = /** @type {Record<string, string>} */ ({
  items: "Asked in up to 3 rounds of other people; the figure is for the first one.",
  itemsets: "Asked in up to 5 rounds of other people; the figure is for the first one.",
});

/** Which tables of options are open: they are drawn anew with every change of the form. @type {Set<string>} */
const open = new Set();

/** @param {number} share */
const points = (share) => `± ${(100 * share).toFixed(share < 0.1 ? 1 : 0)} points`;

/** Half the width of an interval in the words of its unit. @param {any} question @param {string} task */
function precision({ half_width_95: half, of }, task) {
  if (task === "mean") return ["the mean will be known to", `± ${Number(half.toPrecision(2))}`];
  const what = of.includes(",") ? `${of},` : of;
  const known = half < HOPELESS ? points(half) : "more than ± 50 points";
  return [`${task === "histogram" ? "each share" : what} will be known to`, known];
}

/** How many people a usual precision takes; errors fall with the square root of their number. @param {number} half @param {number} n */
function needed(half, n) {
  if (half <= WANTED) return null;
  const people = Math.ceil(Number((n * (half / WANTED) ** 2).toPrecision(3)));
  const about = Number(people.toPrecision(2));
  return `For ± ${100 * WANTED} points at this epsilon ask about ${count(about)} people.`;
}

/** Mechanisms whose names say little. */
const NAMES = /** @type {Record<string, string>} */ ({
  padded: "padding and sampling",
  set_size: "a noisy number",
  one_of: "one of several prefixes",
  levels: "levels of trees over the private columns",
  inp_ht: "one sign of a few answers",
  calm: "views of several questions (CALM)",
  marg_ps: "one whole table each, randomised response",
  marg_rr: "one whole table each, unary encoding",
  marg_rr_oue: "one whole table each, optimised unary encoding",
  marg_ht: "one whole table each, Hadamard",
});

/** The name of an option in words: "hh:4:oue" is a tree. @param {string} name */
function spelled(name) {
  const [method, ...rest] = name.split(":");
  if (NAMES[method]) return NAMES[method];
  if (method === "hh") return `tree of fan-out ${rest[0]}, ${rest[1] === "mixed" ? "several oracles" : rest[1]}`;
  if (method === "haar") return `Haar transform, ${rest[0]}`;
  if (method === "grid") return `trees of fan-outs ${rest[0].replaceAll("x", " × ")}`;
  return method === "flat" ? ["no tree", ...rest].join(", ") : method;
}

/** Names of options inside a sentence, in words. @param {string} why */
const reason = (why) =>
  why.replace(/\b(?:(?:hh:\d+|haar|flat):\w+|grid:[\dx]+|inp_ht|calm|marg_\w+)/g, (name) => `“${spelled(name)}”`);

/** @param {number} bits */
const size = (bits) => (bits === 1 ? "1 bit" : `${count(bits)} bits`);

/** What was compared. @param {any} question */
function compared({ options = [], half_width_95: half, raw_standard_error: error }) {
  if (options.length < 2 || !(error > 0)) return null;
  const width = half / error;
  const best = options.slice(0, MOST_OPTIONS);
  const shown = best.some((/** @type {any} */ one) => one.picked) ? best : [...best, options.find((one) => one.picked)];
  const rows = shown.map((/** @type {any} */ one) =>
    h(
      "tr",
      { "aria-current": one.picked ? "true" : null },
      h("th", { scope: "row" }, spelled(one.name), one.picked && h("small", {}, "picked")),
      h("td", {}, points(width * one.standard_error)),
      h("td", {}, size(one.report_bits)),
    ),
  );
  const heads = ["Method", "Precision", "Report"].map((head) => h("th", { scope: "col" }, head));
  const caption = h("caption", { class: "hidden-text" }, "Methods that were compared");
  const head = h("thead", {}, h("tr", {}, ...heads));
  return h("table", { class: "options" }, caption, head, h("tbody", {}, ...rows));
}

/** By which mechanism, why, and what else was compared: on demand. @param {any} question @param {string} by @param {string} why */
function method(question, by, why) {
  const { name } = question;
  const toggle = (/** @type {any} */ { target }) => (target.open ? open.add(name) : open.delete(name));
  return h(
    "details",
    { open: open.has(name), ontoggle: toggle },
    h("summary", {}, "Method"),
    h("small", { class: "soft" }, `${size(question.report_bits)} per report, by ${spelled(by)}. `),
    why && h("small", { class: "soft why" }, `Why: ${reason(why).replace(/\.$/, "")}.`),
    compared(question),
  );
}

/** What can be found, apart from how it is searched for. @param {string} why of a search */
function finding(why) {
  const sentences = why.split(/(?<=\.) (?=[A-Z])/);
  return sentences.filter((one) => /is found|be detected|stands out|from noise/.test(one)).join(" ");
}

/** The error of what is answered, where answers are better than their intervals say. @param {any} question @param {string} task */
function answered({ between, standard_error: error }, task) {
  if (!between || task === "shares") return null;
  const say = (/** @type {number} */ share) => (100 * share).toFixed(share < 0.1 ? 1 : 0);
  const [low, high] = [Math.min(error, ...between), Math.max(error, ...between)];
  return `Made consistent, answers are typically off by ${say(error)} points (${say(low)} to ${say(high)}, by the shape of the data).`;
}

/** @param {any} question @param {any} asked the question of the draft @param {number} n @param {boolean} several */
function row(question, asked, n, several) {
  const [what, big] = precision(question, asked.task);
  const kind = asked.task === "analytics" ? "levels" : question.mechanism.kind;
  const picked = question.options?.find((/** @type {any} */ one) => one.picked)?.name ?? kind;
  const { task } = asked;
  const remarks = [
    task === "heavy_hitters" && finding(question.why ?? ""),
    task !== "mean" && needed(question.half_width_95, n),
    answered(question, task),
    ROUNDS[task],
  ];
  return h(
    "li",
    {},
    several && h("b", {}, Object.values(asked.text)[0] ?? question.name),
    h("span", {}, `With ${count(n)} respondents ${what}`),
    h("span", { class: "big" }, big),
    h("small", { class: "soft" }, "in 19 of 20 cases"),
    ...remarks.filter(Boolean).map((words) => h("small", { class: "soft" }, words)),
    method(question, picked, question.why),
  );
}

/** @param {any} draft @param {any[]} questions what the planner says @param {number} n @returns {any[]} */
export function predicted(draft, questions, n) {
  const [first] = questions;
  // Questions that are asked together, or beside public columns, share one mechanism and one figure.
  const shared = draft.rows ? "analytics" : draft.policy === "joint" && "marginals";
  if (shared) return judged([row(first, { task: shared }, n, false)], first.half_width_95 > ROUGH);
  const rows = questions.map((question, i) => row(question, draft.questions[i], n, questions.length > 1));
  const rough = questions.some(({ half_width_95: half }, i) => draft.questions[i].task !== "mean" && half > ROUGH);
  return judged(rows, rough);
}

/** @param {any[]} rows @param {boolean} rough */
function judged(rows, rough) {
  const hint = "That is rough. Ask more people, ask fewer questions, or raise epsilon.";
  return [h("ul", {}, ...rows), ...(rough ? [h("p", { class: "hint-box" }, hint)] : [])];
}
