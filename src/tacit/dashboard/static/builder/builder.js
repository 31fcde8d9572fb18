/** The builder: write a collection, see how precise its answers will be, save, try out, publish. */

import { call } from "../page/api.js";
import { faultsOf, inWords } from "./checks.js";
import { sections } from "./fields.js";
import { complain } from "../page/inputs.js";
import { byId, h } from "../page/dom.js";
import { draftOf, modelOf, newModel } from "./draft.js";
import { predicted } from "./forecast.js";
import { count, trouble, twice } from "../page/format.js";

const root = byId("builder");
const PAUSE = 350;

let id = root.dataset.id;
let unsaved = false;
let waiting = 0;
let asking = new AbortController();

/** Fields that were left after a change: what is wrong there is said at once, elsewhere when something is to be done. @type {Set<string>} */
const touched = new Set();
let attempted = false;

const form = { model: newModel(), changed, redraw };

/** Say what is wrong at the fields that somebody has been to; gives everything that is wrong. */
function check() {
  const faults = faultsOf(form.model);
  complain(root, faults.filter(({ field }) => attempted || touched.has(field)));
  if (!faults.length) tell("");
  return faults;
}

/** What keeps the survey from being saved, above the buttons. @param {string} words */
function tell(words) {
  byId("problem").textContent = words;
  byId("problem").hidden = !words;
}

function changed() {
  unsaved = true;
  byId("saved").textContent = "";
  check();
  clearTimeout(waiting);
  waiting = setTimeout(forecast, PAUSE);
}

/** Draw the fields again and keep the keyboard where it was. */
function redraw() {
  const focused = document.activeElement?.id;
  byId("fields").replaceChildren(...sections(form));
  if (focused) byId(focused)?.focus();
  changed();
}

async function forecast() {
  // A forecast of an older draft is of no use any more, and would only keep the collector busy.
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  const draft = draftOf(form.model);
  const started =
    Object.keys(draft.title).length && draft.questions.every((/** @type {any} */ { text }) => Object.keys(text).length);
  const wanted = {
    ...draft,
    ...(!started && {
      title: { en: "…" },
      about: { en: "…" },
      questions: draft.questions.map((/** @type {any} */ one) => ({ ...one, text: { en: "…" } })),
    }),
  };
  /** @param {any[]} shown */
  const show = (...shown) => signal.aborted || byId("forecast").replaceChildren(...shown);
  const soft = (/** @type {string} */ words) => show(h("p", { class: "soft" }, words));
  // Texts do not matter to the precision.
  const faults = faultsOf(form.model).filter(({ field }) => !/^(title|text)-/.test(field));
  if (faults.length) return soft(unfinished(faults[0]));
  try {
    const { questions, problem } = await call("POST", "plan?unfinished=true", wanted, signal);
    if (problem) soft(inWords(problem.detail, form.model));
    else show(...predicted(draft, questions, form.model.respondents));
  } catch (error) {
    soft(/** @type {Error} */ (error).message);
  }
  return undefined;
}

/** What is missing, gently: the form is still being filled in. @param {import("./checks.js").Fault} fault */
function unfinished({ words }) {
  const { questions } = form.model;
  const untouched = questions.findIndex(
    (/** @type {any} */ { kind, labels }) => ["categories", "ordered", "items"].includes(kind) && !labels.trim(),
  );
  if (untouched < 0) return words;
  const where = questions.length > 1 ? ` of question ${untouched + 1}` : "";
  return `List the choices${where} to see how precise the answers will be.`;
}

/** Whether everything is filled in; otherwise it is said at the fields, and the first of them gets the keyboard. */
function isWhole() {
  attempted = true;
  const [first, ...more] = check();
  if (!first) return true;
  const input = byId(first.field);
  input?.closest("details")?.setAttribute("open", "");
  input?.focus();
  tell(more.length ? `${count(more.length + 1)} fields need another look; they say why.` : first.words);
  return false;
}

/** Save, and say where the draft is now. @returns {Promise<boolean>} */
async function save() {
  if (!isWhole()) return false;
  const draft = draftOf(form.model);
  const saved = id ? await call("PUT", `collections/${id}`, draft) : await call("POST", "collections", draft);
  if (!id) history.replaceState(null, "", `/dashboard/collections/${saved.id}`);
  id = saved.id;
  unsaved = false;
  byId("saved").textContent = "Draft saved";
  actions();
  return true;
}

/** @param {() => Promise<any>} task */
const attempt = (task) => async () => {
  try {
    await task();
  } catch (error) {
    tell(inWords(/** @type {Error} */ (error).message, form.model));
  }
};

/** What will be fixed, before it is. */
function confirmed() {
  const { questions, epsilon, respondents, minimumCohort } = form.model;
  const many = questions.length === 1 ? "1 question" : `${count(questions.length)} questions`;
  byId("publish-words").textContent =
    `${many}, epsilon ${epsilon}, for about ${count(respondents)} respondents; answers are shown from ${count(minimumCohort)} reports on.`;
  byId("publish").returnValue = "no";
  byId("publish").showModal();
}

async function publish() {
  if (await save()) confirmed();
}

async function published() {
  if (byId("publish").returnValue !== "yes") return;
  const { id: made } = await call("POST", `collections/${id}/publish`, {});
  location.assign(`/dashboard/collections/${made}`);
}

async function preview() {
  if (await save()) location.assign(`/c/${id}?preview`);
}

async function discard() {
  await call("DELETE", `collections/${id}`);
  unsaved = false;
  location.assign("/dashboard");
}

function actions() {
  const button = (/** @type {string} */ name, /** @type {string} */ kind, /** @type {() => Promise<any>} */ task) =>
    h("button", { type: "button", class: kind, onclick: attempt(task) }, name);
  byId("actions").replaceChildren(
    button("Publish…", "primary", publish),
    button("Preview", "", preview),
    button("Save draft", "", save),
    id ? h("button", { type: "button", class: "quiet", onclick: twice(attempt(discard)) }, "Delete draft") : "",
    h(
      "p",
      { class: "soft" },
      "A published collection never changes. Questions, mechanism and epsilon are fixed by its address.",
    ),
  );
}

async function start() {
  try {
    if (id) form.model = modelOf((await call("GET", `collections/${id}`)).draft);
  } catch (error) {
    return byId("fields").replaceChildren(trouble(/** @type {Error} */ (error), start));
  }
  redraw();
  unsaved = false;
  actions();
  root.addEventListener("change", (/** @type {any} */ { target }) => {
    touched.add(target.id);
    check();
  });
  byId("publish").addEventListener("close", attempt(published));
  root.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  addEventListener("beforeunload", (event) => unsaved && event.preventDefault());
}

await start();
