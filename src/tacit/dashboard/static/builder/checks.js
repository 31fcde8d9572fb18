/** What is still wrong with a survey that is being written, each at the field where it is mended. */

import { alphabetOf, fitting, isAdaptive, isOptional, isOneTask, items, lines, namesOf } from "./draft.js";
import { count } from "../page/format.js";
import { ownName } from "../page/words.js";

/** @typedef {{field: string, words: string}} Fault the id of an input, and what to do about it */

const NAME = /^[a-z][a-z0-9_]{0,39}$/;
const ORIGIN = /^(https?:\/\/[a-z0-9.-]+(:[0-9]{1,5})?|\*)$/;
const DECIMAL = /^-?[0-9]{1,15}(\.[0-9]{1,18})?$/;
const MOST_VALUES = 2 ** 20;
const WHOLE = /** @type {[string, string, number][]} */ ([
  ["respondents", "respondents", 10000000000],
  ["cohort", "minimumCohort", 1000000000],
  ["retention", "retentionDays", 36500],
]);

/** A range in words. @param {number} low @param {number} high */
const range = (low, high) => `${count(low)} to ${count(high)}`;

/** @param {string} text */
const isWhole = (text) => /^-?[0-9]{1,15}$/.test(String(text).trim());

/** Texts that are missing in one of the languages. @param {any} texts @param {string[]} languages @param {string} id @param {string} words @returns {Fault[]} */
const untold = (texts, languages, id, words) =>
  languages
    .filter((language) => !(texts[language] ?? "").trim())
    .map((language) => ({ field: `${id}-${language}`, words: languages.length > 1 ? `${words} In ${ownName(language)} it is missing.` : words }));

/** @param {any} question @returns {Fault[]} */
function ofLabels(question) {
  const { key, kind, labels, other } = question;
  const field = `labels-${key}`;
  const listed = lines(labels);
  const least = kind === "items" || (kind === "categories" && other.trim()) ? 1 : 2;
  const twice = listed.find((label, i) => listed.indexOf(label) < i);
  if (listed.length < least) return [{ field, words: least === 1 ? "List at least one, one per line." : "List at least two choices, one per line." }];
  if (twice) return [{ field, words: `“${twice}” is listed twice. Every line must be another choice.` }];
  const long = listed.find((label) => new TextEncoder().encode(label).length > 256);
  if (long) return [{ field, words: `“${long.slice(0, 40)}…” is too long: 1 to 256 letters.` }];
  if (kind === "categories" && listed.includes(other.trim())) return [{ field: `other-${key}`, words: "This is one of the choices already." }];
  return kind === "items" ? ofMost(question, listed.length) : [];
}

/** @param {any} question @param {number} listed @returns {Fault[]} */
function ofMost({ key, most }, listed) {
  const fits = !most || (isWhole(most) && Number(most) >= 1 && Number(most) <= listed);
  return fits ? [] : [{ field: `most-${key}`, words: `A whole number, ${range(1, listed)}, or nothing.` }];
}

/** @param {any} question @returns {Fault[]} */
function ofNumbers({ key, low, high, step, task }) {
  for (const [name, value] of Object.entries({ low, high, step })) {
    if (!isWhole(value)) return [{ field: `${name}-${key}`, words: "A whole number, please." }];
  }
  if (Number(high) <= Number(low)) return [{ field: `high-${key}`, words: `Must be more than ${count(Number(low))}, where the numbers begin.` }];
  const [span, each] = [Number(high) - Number(low), Number(step)];
  if (each < 1 || each > span) return [{ field: `step-${key}`, words: `A whole number, ${range(1, span)}.` }];
  if (span % each) return [{ field: `step-${key}`, words: `Steps of ${count(each)} from ${count(Number(low))} do not reach ${count(Number(high))}.` }];
  if (task === "histogram" && span / each + 1 > MOST_VALUES) return [{ field: `step-${key}`, words: `That is ${count(span / each + 1)} answers; at most ${count(MOST_VALUES)} can be listed. Use larger steps, or ask for ranges or the mean.` }];
  return [];
}

/** @param {any} question @returns {Fault[]} */
function ofEdges({ key, edges, openBelow, openAbove }) {
  const field = `edges-${key}`;
  const given = items(edges);
  const wrong = given.find((edge) => !DECIMAL.test(edge));
  if (wrong) return [{ field, words: `“${wrong.slice(0, 20)}” is no number. Write decimals with a point, and put a comma or a blank between the numbers.` }];
  if (given.some((edge, i) => i && Number(edge) <= Number(given[i - 1]))) return [{ field, words: "The numbers must rise, from the smallest to the largest." }];
  const ranges = given.length - 1 + Number(openBelow) + Number(openAbove);
  return given.length && ranges >= 2 ? [] : [{ field, words: "Give at least two ranges, such as 0, 1000, 2500." }];
}

/** @param {any} question @returns {Fault[]} */
function ofText(question) {
  const { key, textLength } = question;
  const most = fitting(alphabetOf(question));
  if (!most) return [{ field: `characters-${key}`, words: "List the characters that may be used." }];
  const fits = isWhole(textLength) && Number(textLength) >= 1 && Number(textLength) <= most;
  return fits ? [] : [{ field: `textLength-${key}`, words: `A whole number, ${range(1, most)}.` }];
}

const ANSWERS = /** @type {Record<string, (question: any) => Fault[]>} */ ({
  categories: ofLabels,
  ordered: ofLabels,
  items: ofLabels,
  integers: ofNumbers,
  buckets: ofEdges,
  text: ofText,
  pair: ({ parts }) => parts.flatMap((/** @type {any} */ part) => [...ofName(part), ...ANSWERS[part.kind](part)]),
});

/** @param {any} part @returns {Fault[]} */
const ofName = ({ key, name }) => (name.trim() ? [] : [{ field: `name-${key}`, words: "Give it a short name." }]);

/** @param {any} question @returns {Fault[]} */
function ofDeclining(question) {
  if (!isOptional(question)) return [];
  const words = question.declined.trim();
  const field = `declined-${question.key}`;
  if (!words) return [{ field, words: "Say what it is called, such as “Prefer not to say”." }];
  const taken = ["categories", "ordered", "items"].includes(question.kind) && [...lines(question.labels), question.other.trim()].includes(words);
  return taken ? [{ field, words: "This is one of the choices already." }] : [];
}

/** @param {any} model @returns {Fault[]} */
function ofNames(model) {
  const names = namesOf(model);
  return model.questions.flatMap((/** @type {any} */ { key, name }, /** @type {number} */ i) => {
    if (!name) return [];
    if (!NAME.test(name)) return [{ field: `name-${key}`, words: "1 to 40 small letters, digits and underscores; the first is a letter." }];
    return names.indexOf(name) < i ? [{ field: `name-${key}`, words: "Another question has this name." }] : [];
  });
}

/** @param {any} model @returns {Fault[]} */
function ofColumns({ hasColumns, table, columns }) {
  if (!hasColumns) return [];
  const rule = "1 to 40 small letters, digits and underscores; the first is a letter.";
  const wrong = columns.flatMap((/** @type {any} */ { name }, /** @type {number} */ i) => (NAME.test(name.trim()) ? [] : [{ field: `column-${i}`, words: rule }]));
  return [...(NAME.test(table.trim()) ? [] : [{ field: "table", words: rule }]), ...wrong];
}

/** @param {any} model @returns {Fault[]} */
function ofRules(model) {
  const wrong = WHOLE.filter(([, name, most]) => !(Number.isInteger(model[name]) && model[name] >= 1 && model[name] <= most));
  const strange = items(model.origins).find((origin) => !ORIGIN.test(origin));
  return [
    ...wrong.map(([field, , most]) => ({ field, words: `A whole number, ${range(1, most)}.` })),
    ...(strange ? [{ field: "origins", words: `“${strange.slice(0, 60)}” is no origin. Write https:// and the host in small letters, with nothing behind it.` }] : []),
  ];
}

/** Everything that keeps a survey from being published, in the order of the form. @param {any} model @returns {Fault[]} */
export function faultsOf(model) {
  const { languages, questions } = model;
  const rounds = questions.length > 1 && !isOneTask(model) ? questions.filter(isAdaptive) : [];
  const asked = questions.flatMap((/** @type {any} */ question) => [
    ...untold(question.text, languages, `text-${question.key}`, "Write the question."),
    ...(ANSWERS[question.kind]?.(question) ?? []),
    ...ofDeclining(question),
  ]);
  return [
    ...untold(model.title, languages, "title", "Give the survey a title."),
    ...asked,
    ...ofNames(model),
    ...rounds.map((/** @type {any} */ { key }) => ({ field: `task-${key}`, words: "This is asked in rounds, and so by itself. Choose the share of every thing, or remove the other questions." })),
    ...ofColumns(model),
    ...ofRules(model),
  ];
}

/** What the collector says about a draft, in the words of the form: its question by place instead of by path. @param {string} detail @param {any} model */
export function inWords(detail, model) {
  const names = namesOf(model);
  const placed = detail
    .replace(/\bquestions\[(\d+)\](\.\w+)?/g, (_, place) => `Question ${Number(place) + 1}`)
    .replace(/^(?:\w+: )?'(\w+)'|\bquestion '(\w+)'/g, (whole, first, second) => {
      const at = names.indexOf(first ?? second);
      return at < 0 ? whole : `question ${at + 1}`;
    })
    .replace(/^(?:draft|document)(?:\.(\w+))?:?\s*/, (_, field) => (field ? `${field.replaceAll("_", " ")} ` : ""))
    .replace(/^(\w+): /, (whole, name) => (names.includes(name) ? `Question ${names.indexOf(name) + 1}: ` : whole));
  return placed.charAt(0).toUpperCase() + placed.slice(1);
}
