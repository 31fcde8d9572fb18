/** The builder's form: languages, texts, questions, privacy and rules. */

import { publicColumns } from "./columns.js";
import { KINDS, declining, domain, task } from "./domains.js";
import { check, field, select, text } from "../page/inputs.js";
import { policies } from "./policy.js";
import { shuffleTerms } from "./shuffle.js";
import { h } from "../page/dom.js";
import { copyOf, isAdaptive, isOneTask, items, namesOf, newQuestion } from "./draft.js";
import { isWeak, plain, surest } from "../page/odds.js";
import { ownName } from "../page/words.js";

const ALONE = "A question that is asked in rounds must be the only one; remove the others.";
const PLANNED = "How the questions are asked is chosen to suit the queries below.";

/** @typedef {import("../page/inputs.js").Form} Form */

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

/** Buttons that move, copy and remove a question. @param {Form} form @param {number} place */
function handles(form, place) {
  const { questions } = form.model;
  const button = (/** @type {string} */ id, /** @type {string} */ words, /** @type {string} */ said, /** @type {() => void} */ change) =>
    h("button", { type: "button", class: "quiet", id: `${id}-${questions[place].key}`, "aria-label": said, onclick: () => (change(), form.redraw()) }, words);
  const move = (/** @type {number} */ by) => () => questions.splice(place + by, 0, ...questions.splice(place, 1));
  const name = `question ${place + 1}`;
  return h(
    "div",
    { class: "handles" },
    place > 0 && button("up", "↑ Up", `Move ${name} up`, move(-1)),
    place < questions.length - 1 && button("down", "↓ Down", `Move ${name} down`, move(1)),
    button("copy", "Duplicate", `Duplicate ${name}`, () => questions.splice(place + 1, 0, copyOf(questions[place]))),
    questions.length > 1 && button("remove", "Remove", `Remove ${name}`, () => questions.splice(place, 1)),
  );
}

/** The name that exports and the API know a question by. @param {Form} form @param {any} question @param {number} place */
function named(form, question, place) {
  const input = text(form, question, "name", `name-${question.key}`, { maxlength: 40, spellcheck: "false", placeholder: namesOf(form.model)[place] });
  return h(
    "details",
    { open: Boolean(question.name) && !/^[a-z][a-z0-9_]*$/.test(question.name) },
    h("summary", {}, "Name in exports"),
    field("Name", input, "Small letters, digits and underscores. Empty: made from the question."),
  );
}

/** @param {Form} form @param {any} question @param {number} place */
function ask(form, question, place) {
  return h(
    "fieldset",
    { class: "question-card", "data-key": question.key },
    h("legend", {}, `Question ${place + 1}`),
    ...texts(form, question.text, `text-${question.key}`, "Question", { maxlength: 500 }),
    field("Answer", select(form, question, "kind", `kind-${question.key}`, KINDS)),
    ...domain(form, question),
    ...declining(form, question),
    !isOneTask(form.model) && task(form, question),
    named(form, question, place),
    handles(form, place),
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
  const alone = model.questions.find(isAdaptive);
  return h(
    "section",
    { class: "card", "aria-labelledby": "asking-title" },
    h("h2", { id: "asking-title" }, "Questions"),
    ...model.questions.map((/** @type {any} */ question, /** @type {number} */ i) => ask(form, question, i)),
    alone && several && h("p", { class: "hint-box" }, ALONE),
    h("div", {}, h("button", { type: "button", id: "add", onclick: add }, "Add a question")),
    several && !model.hasColumns && policies(form),
    several && model.hasColumns && h("p", { class: "soft" }, PLANNED),
  );
}

/** What epsilon means. @param {string} epsilon */
function meaning(epsilon) {
  const ratio = Math.exp(Number(epsilon));
  const odds = `ε = ${epsilon}: if somebody takes a respondent's answer for a coin toss, 50 %, the report can make them at most ${plain(surest(ratio))} % sure of it.`;
  return isWeak(ratio) ? `${odds} That is close to certainty: the noise protects an answer only weakly.` : odds;
}

/** @param {Form} form */
function privacy(form) {
  const { model } = form;
  const words = h("output", { class: "hint", for: "epsilon" });
  const explain = () => (words.textContent = meaning(model.epsilon));
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
      field("Show answers from", whole("minimumCohort", "cohort", { max: 1000000000 }), "reports on"),
      field("Delete reports after", whole("retentionDays", "retention", { max: 36500 }), "days, 1 to 36,500"),
    ),
    field(
      "Sites that may embed it or send reports",
      text(form, model, "origins", "origins", { tag: "textarea", spellcheck: "false" }),
      "One origin per line, such as https://example.org. May stay empty; sites can also be added later.",
    ),
    check(form, model, "invitations", "Every respondent needs an invitation that works once"),
    check(form, model, "tokens", "An invitation is exchanged for an anonymous token, so that nobody knows whose report is whose"),
  );
}

/** Everything. @param {Form} form @returns {any[]} */
export const sections = (form) =>
  [basics(form), asking(form), privacy(form), publicColumns(form), shuffleTerms(form)].filter(Boolean);
