/** The builder: write a collection, see how precise its answers will be, save, try out, publish. */

import { call, notify } from "./api.js";
import { sections } from "./builder_fields.js";
import { byId, h } from "./dom.js";
import { draftOf, modelOf, newModel } from "./draft.js";
import { predicted } from "./forecast.js";
import { trouble, twice } from "./format.js";

const root = byId("builder");
const PAUSE = 350;

let id = root.dataset.id;
let unsaved = false;
let waiting = 0;
let asking = new AbortController();

const form = { model: newModel(), changed, redraw };

function changed() {
  unsaved = true;
  byId("saved").textContent = "";
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
  try {
    const { questions, problem } = await call("POST", "plan?unfinished=true", wanted, signal);
    if (problem) soft(unfinished(problem));
    else show(...predicted(draft, questions, form.model.respondents));
  } catch (error) {
    soft(/** @type {Error} */ (error).message);
  }
}

/** What is missing, gently: the form is still being filled in. @param {{ detail: string }} problem */
function unfinished({ detail }) {
  const untouched = form.model.questions.some(
    (/** @type {any} */ { kind, labels }) => ["categories", "ordered", "items"].includes(kind) && !labels.trim(),
  );
  return untouched ? "List the choices to see how precise the answers will be." : detail;
}

/** Save, and say where the draft is now. @returns {Promise<boolean>} */
async function save() {
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
    notify(/** @type {Error} */ (error).message);
  }
};

async function publish() {
  await save();
  const { id: published } = await call("POST", `collections/${id}/publish`, {});
  location.assign(`/dashboard/collections/${published}`);
}

async function tryOut() {
  await save();
  location.assign(`/c/${id}?preview`);
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
    button("Publish", "primary", publish),
    button("Save draft", "", save),
    button("Try it out", "", tryOut),
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
  root.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  addEventListener("beforeunload", (event) => unsaved && event.preventDefault());
}

await start();
