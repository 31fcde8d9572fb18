/** The builder's form: languages, texts, questions, privacy and rules. */

import { h } from "./dom.js";
import { items, newQuestion } from "./draft.js";
import { ownName } from "./words.js";

const KINDS = [
  ["categories", "One of several choices"],
  ["ordered", "Choices in an order, such as never to always"],
  ["booleans", "Yes or no"],
  ["integers", "A whole number"],
  ["buckets", "A number, asked as ranges"],
  ["bits", "Several things to tick"],
];
const HISTOGRAM = ["histogram", "The share of every answer"];
const RANGES = ["ranges", "Ranges and quantiles"];
const TASKS = /** @type {Record<string, string[][]>} */ ({
  ordered: [HISTOGRAM, RANGES],
  integers: [HISTOGRAM, ["mean", "The mean"], RANGES],
  buckets: [HISTOGRAM, RANGES],
});

/**
 * @typedef {object} Form
 * @property {any} model
 * @property {() => void} changed something was typed
 * @property {() => void} redraw fields were added or taken away
 */

/** @param {string} label @param {any} input @param {string} [hint] */
function field(label, input, hint) {
  if (hint) input.setAttribute("aria-describedby", `${input.id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: input.id }, label),
    input,
    hint && h("span", { class: "hint", id: `${input.id}-hint` }, hint),
  );
}

/** An input that keeps a property. @param {Form} form @param {any} object @param {string} name @param {string} id @param {any} [attributes] */
function text(form, object, name, id, attributes = {}) {
  const { tag = "input", read = (/** @type {string} */ value) => value, ...rest } = attributes;
  const keep = () => {
    object[name] = read(input.value);
    form.changed();
  };
  const input = h(tag, { id, oninput: keep, autocomplete: "off", ...rest });
  input.value = object[name] ?? "";
  return input;
}

/** @param {Form} form @param {any} object @param {string} name @param {string} id @param {string[][]} options */
function select(form, object, name, id, options) {
  const keep = () => {
    object[name] = input.value;
    form.redraw();
  };
  const input = h("select", { id, onchange: keep }, ...options.map(([value, words]) => h("option", { value }, words)));
  input.value = object[name];
  return input;
}

/** @param {Form} form @param {any} object @param {string} name @param {string} words */
function check(form, object, name, words) {
  const keep = () => {
    object[name] = box.checked;
    form.changed();
  };
  const box = h("input", { type: "checkbox", onchange: keep });
  box.checked = object[name];
  return h("label", { class: "check" }, box, words);
}

/** One text in every language. @param {Form} form @param {any} texts @param {string} id @param {string} label @param {any} [attributes] */
function texts(form, texts, id, label, attributes = {}) {
  const { languages } = form.model;
  return languages.map((/** @type {string} */ language) => {
    const named = languages.length > 1 ? `${label} (${ownName(language)})` : label;
    return field(
      named,
      text(form, texts, language, `${id}-${language}`, { lang: language.replace("_", "-"), ...attributes }),
    );
  });
}

/** @param {Form} form */
function basics(form) {
  const { model } = form;
  const set = (/** @type {any} */ event) => {
    const wanted = items(event.target.value.toLowerCase()).filter((one) => /^[a-z]{2,3}(_[a-z]{2,8})?$/.test(one));
    model.languages = wanted.length ? [...new Set(wanted)] : ["en"];
    form.redraw();
  };
  const languages = h("input", {
    id: "languages",
    value: model.languages.join(", "),
    onchange: set,
    autocomplete: "off",
    spellcheck: "false",
  });
  return h(
    "section",
    { class: "card", "aria-labelledby": "basics-title" },
    h("h2", { id: "basics-title" }, "What it is about"),
    ...texts(form, model.title, "title", "Title", { maxlength: 200 }),
    ...texts(form, model.about, "about", "What respondents should know", { tag: "textarea", maxlength: 4000 }),
    field("Languages", languages, "Tags such as en, de, fr. Every text is asked for in each of them."),
  );
}

/** The fields of a question's domain. @param {Form} form @param {any} question @returns {any[]} */
function domain(form, question) {
  const id = (/** @type {string} */ name) => `${name}-${question.key}`;
  const number = (/** @type {string} */ name, /** @type {string} */ label) =>
    field(label, text(form, question, name, id(name), { type: "number", step: 1 }));
  if (question.kind === "integers") {
    return [h("div", { class: "pair" }, number("low", "From"), number("high", "To"), number("step", "In steps of"))];
  }
  if (question.kind === "buckets") {
    const edges = field(
      "Edges of the ranges",
      text(form, question, "edges", id("edges"), { inputmode: "decimal" }),
      "For example 0, 1000, 2500, 5000. A number belongs to the range that begins at it.",
    );
    return [
      edges,
      check(form, question, "openBelow", "Also ask for less than the first"),
      check(form, question, "openAbove", "Also ask for the last and more"),
    ];
  }
  if (question.kind === "bits") return [number("length", "How many things to tick")];
  if (question.kind === "booleans") return [];
  const labels = field("Choices, one per line", text(form, question, "labels", id("labels"), { tag: "textarea" }));
  if (question.kind === "ordered") return [labels];
  return [
    labels,
    field("Name of a last choice for everything else (may stay empty)", text(form, question, "other", id("other"))),
  ];
}

/** What is wanted of the answers, where there is a choice. @param {Form} form @param {any} question */
function task(form, question) {
  const tasks = TASKS[question.kind];
  if (!tasks) return null;
  if (!tasks.some(([name]) => name === question.task)) question.task = "histogram";
  const ranges = question.task === "ranges" && "The share of any range, the cumulative distribution and quantiles.";
  const menu = select(form, question, "task", `task-${question.key}`, tasks);
  return field("What you want to know", menu, ranges || undefined);
}

/** @param {Form} form @param {any} question @param {number} place */
function ask(form, question, place) {
  const { questions } = form.model;
  const remove = () => {
    questions.splice(place, 1);
    form.redraw();
  };
  return h(
    "fieldset",
    { class: "question-card" },
    h("legend", {}, `Question ${place + 1}`),
    ...texts(form, question.text, `text-${question.key}`, "Question", { maxlength: 500 }),
    field("Answer", select(form, question, "kind", `kind-${question.key}`, KINDS)),
    ...domain(form, question),
    task(form, question),
    questions.length > 1 &&
      h("div", {}, h("button", { type: "button", class: "quiet", onclick: remove }, `Remove question ${place + 1}`)),
  );
}

/** @param {Form} form */
function asking(form) {
  const { model } = form;
  const add = () => {
    model.questions.push(newQuestion());
    form.redraw();
    document.getElementById(`text-${model.questions.at(-1).key}-${model.languages[0]}`)?.focus();
  };
  const several = model.questions.length > 1;
  const policies = [
    ["one_of", "Each respondent reports on one question, picked at random (usually better)"],
    ["all_of", "Each respondent reports on all of them, epsilon is divided"],
  ];
  return h(
    "section",
    { class: "card", "aria-labelledby": "asking-title" },
    h("h2", { id: "asking-title" }, "Questions"),
    ...model.questions.map((/** @type {any} */ question, /** @type {number} */ i) => ask(form, question, i)),
    h("div", {}, h("button", { type: "button", id: "add", onclick: add }, "Add a question")),
    several && field("With several questions", select(form, model, "policy", "policy", policies)),
  );
}

/** How sure somebody can become at most. @param {string} epsilon */
const sure = (epsilon) => Math.round(100 / (1 + Math.exp(-Number(epsilon))));

/** @param {Form} form */
function privacy(form) {
  const { model } = form;
  const words = h("output", { class: "hint", for: "epsilon" });
  const explain = () =>
    (words.textContent = `ε = ${model.epsilon}: if somebody takes a respondent's answer for a coin toss, 50 %, the report can make them at most ${sure(model.epsilon)} % sure of it.`);
  const told = { ...form, changed: () => (explain(), form.changed()) };
  const range = text(told, model, "epsilon", "epsilon", { type: "range", min: 0.1, max: 6, step: 0.1 });
  explain();
  const whole = (/** @type {string} */ name, /** @type {string} */ id, /** @type {any} */ rest) =>
    text(form, model, name, id, { type: "number", step: 1, min: 1, read: Number, ...rest });
  return h(
    "section",
    { class: "card", "aria-labelledby": "privacy-title" },
    h("h2", { id: "privacy-title" }, "Privacy"),
    h(
      "div",
      { class: "field" },
      h("label", { for: "epsilon" }, "Epsilon: smaller protects more, larger answers more precisely"),
      range,
      words,
    ),
    h(
      "div",
      { class: "pair" },
      field("Expected respondents", whole("respondents", "respondents", { max: 10000000000 })),
      field("Show answers from", whole("minimumCohort", "cohort", { max: 1000000000 }), "reports"),
      field("Delete reports after", whole("retentionDays", "retention", { max: 36500 }), "days"),
    ),
    field(
      "Sites that may embed it or send reports",
      text(form, model, "origins", "origins", { tag: "textarea", spellcheck: "false" }),
      "One origin per line, such as https://example.org. May stay empty.",
    ),
    check(form, model, "invitations", "Every respondent needs an invitation that works once"),
  );
}

/** Everything. @param {Form} form @returns {any[]} */
export const sections = (form) => [basics(form), asking(form), privacy(form)];
