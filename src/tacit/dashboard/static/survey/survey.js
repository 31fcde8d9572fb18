/** The survey page: ask, show the noisy report, send it, give a receipt. */

import { accountTable } from "./accounts.js";
import { byId, h, inLanguage } from "../page/dom.js";
import { describe } from "./describe.js";
import { field } from "./fields.js";
import { tellHeight } from "./height.js";
import { epsilonOf, promise } from "./promise.js";
import { publicFields, sentColumns } from "./public_fields.js";
import { Participation, Preview, canRemember } from "./respond.js";
import { hindrance, partOf, shufflePromise, waitsFor } from "./shuffled.js";
import { ownName, speaker, tag } from "../page/words.js";

const page = byId("survey");
const status = byId("status");
const { id, state: published } = page.dataset;
const preview = published === "draft";
const participation = preview ? new Preview(id) : canRemember() ? new Participation(id) : null;

/** @type {any} */
let collection;
let language = "en";
let say = speaker(language);
/** Where reports are shuffled: the session that takes them now, or why there is none. @type {any} */
let session = null;
/** @type {any} */
let hindered = null;
/** What is known about the part that the report took in the shuffle. @type {any} */
let part = null;
/** What the page shows: "ask", "review", "later", "after", "closed" or "passed". */
let view = "ask";
/** @type {any[]} */
let fields = [];
/** The public columns, where the document has any. @type {any} */
let publics = publicFields(null, say);

const text = (/** @type {any} */ value) => inLanguage(value, language);
const announce = (/** @type {string} */ words) => (status.textContent = words);

/** Languages in which everything is said. @returns {string[]} */
function languages() {
  const all = [collection.about, ...collection.questions.map((/** @type {any} */ q) => q.text)];
  return Object.keys(collection.title).filter((one) => all.every((words) => words[one]));
}

/** The language a visitor prefers among those there are. */
function preferred() {
  const there = languages();
  const wanted = navigator.languages.map((one) => one.toLowerCase().replace("-", "_"));
  return (
    wanted.map((one) => there.find((has) => has === one || has === one.split("_")[0])).find(Boolean) ?? there[0] ?? "en"
  );
}

/** @param {string} chosen */
function speak(chosen) {
  language = chosen;
  say = speaker(language);
  document.documentElement.lang = tag(language);
  document.title = `${text(collection.title)} · Tacit`;
}

function languageSwitch() {
  const there = languages();
  if (there.length < 2) return null;
  const choose = (/** @type {string} */ one) => () => {
    const all = () => [...fields, ...publics.fields];
    const kept = all().map((one) => one.keep());
    speak(one);
    render();
    all().forEach((one, i) => one.restore(kept[i]));
    page.querySelector(`[data-language="${one}"]`)?.focus();
  };
  const buttons = there.map((one) =>
    h(
      "button",
      {
        type: "button",
        lang: tag(one),
        "data-language": one,
        "aria-pressed": String(one === language),
        onclick: choose(one),
      },
      ownName(one),
    ),
  );
  return h("div", { class: "languages", role: "group", "aria-label": say("language") }, ...buttons);
}

function heading() {
  const about = text(collection.about);
  return h(
    "header",
    {},
    languageSwitch(),
    h("h1", {}, text(collection.title)),
    about && about !== text(collection.title) && h("p", { class: "about" }, about),
  );
}

/** The invitation of the link, which never reaches the server before the report does. */
const invitation = () => new URLSearchParams(location.hash.slice(1)).get("invitation") ?? "";

/** One question: its fields, its error, and what survives a change of language. @param {any} question */
function ask(question) {
  const label = text(question.text);
  const made = field(question.name, question.domain, say, label);
  const error = h("p", { class: "error", id: `error-${question.name}` });
  const { kind, domain, declined } = question.domain;
  // Of things to tick, none is an answer of its own.
  const optional = kind === "optional" && domain.kind !== "items" && h("p", { class: "hint first" }, say("optional", { declined }));
  const set = h("fieldset", {}, h("legend", {}, label), optional, made.element, error);
  const inputs = () => [...set.querySelectorAll("input, select")];
  const complain = (/** @type {string} */ words) => {
    error.textContent = words;
    for (const input of inputs()) input.setAttribute("aria-invalid", String(Boolean(words)));
  };
  // What was wrong is judged again at the next try; until then nothing red stands at what was just filled in.
  set.addEventListener("input", () => error.textContent && complain(""));
  const keep = () =>
    inputs().map((input) =>
      input.checked === undefined || input.type === "text" ? input.value : [input.checked, input.value],
    );
  const restore = (/** @type {any[]} */ kept) =>
    inputs().forEach((input, i) =>
      Array.isArray(kept[i]) ? ([input.checked, input.value] = kept[i]) : (input.value = kept[i]),
    );
  return { keep, restore, ...made, question, complain, element: h("div", { class: "card" }, set) };
}

/** Answers by name, or undefined after saying what is wrong. @returns {Record<string, any> | undefined} */
function read() {
  /** @type {Record<string, any>} */
  const answers = {};
  let wrong;
  for (const one of fields) {
    const { name, domain } = one.question;
    const answer = one.read();
    const complaint =
      answer === undefined ? say("missing") : fits(domain, answer) ? "" : (one.why?.() ?? say("invalid"));
    one.complain(complaint);
    if (complaint) wrong ??= { ...one, complaint };
    answers[name] = answer;
  }
  for (const one of publics.fields) {
    const complaint = one.fits() ? "" : say("columnInvalid", { name: one.name });
    one.complain(complaint);
    if (complaint) wrong ??= { ...one, complaint };
  }
  if (!wrong) return answers;
  wrong.focus.focus();
  announce(wrong.complaint);
  return undefined;
}

/** @param {any} domain @param {any} answer */
function fits(domain, answer) {
  try {
    domain.encode(answer);
    return true;
  } catch {
    return false;
  }
}

function form() {
  fields = collection.questions.map(ask);
  publics = publicFields(collection.rows, say);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.hidden = true;
    const answers = read();
    if (!answers) return;
    try {
      await participation?.draw(answers, invitation(), collection.rows ? publics.read() : undefined);
    } catch (error) {
      // Another tab may have answered in the meantime: then there is a report to show.
      if (participation?.entry()) return show(firstView());
      problem.hidden = false;
      problem.textContent = (collection.shuffle && hindrance(error, say)) || say("notDrawn", { reason: reasonOf(error) });
      return;
    }
    show("review");
  };
  return h(
    "form",
    { class: "questions", novalidate: true, autocomplete: "off", onsubmit: submit },
    ...fields.map(({ element }) => element),
    publics.element,
    problem,
    h("div", { class: "actions" }, h("button", { class: "primary", type: "submit" }, say("show"))),
    h("p", { class: "soft" }, say("once")),
  );
}

/** The report in hexadecimal, after the number of the question or level where one was drawn. @param {any} entry */
const shown = ({ member, report }) =>
  (collection.mechanism.family?.mechanisms ? `${member + 1}: ` : "") + (report.match(/.{1,4}/g) ?? []).join(" ");

/** No answer stays on the page once the noise is drawn. */
function forget() {
  fields = [];
  publics = publicFields(null, say);
}

function review() {
  forget();
  const entry = participation?.entry();
  const send = h("button", { class: "primary", type: "button", onclick: transmit }, say("send"));
  return h(
    "section",
    { class: "card review", "aria-labelledby": "review" },
    h("h2", { id: "review", tabindex: "-1" }, say("reviewTitle")),
    h("p", { class: "report", id: "report" }, shown(entry)),
    h("h3", {}, say("inWords")),
    h("ul", { class: "said" }, ...describe(collection, entry, say, text).map((words) => h("li", {}, words))),
    sentColumns(entry.row, say),
    h("p", { class: "soft" }, say(collection.shuffle ? "reviewNoteShuffled" : entry.row ? "reviewNoteRows" : "reviewNote")),
    h("div", { class: "actions" }, send, h("button", { type: "button", onclick: () => show("later") }, say("later"))),
  );
}

/** @param {any} event */
async function transmit(event) {
  event.target.disabled = true;
  announce(say("sending"));
  await participation?.send();
  show("after");
}

const OWN_ERRORS = ["InvalidSpec", "InvalidValue", "AlreadyAnswered", "TacitError", "CannotSeal", "ProtocolViolation"];

/** What an error says; the client's own errors never contain an answer, and no other's words are repeated. */
const reasonOf = (/** @type {any} */ error) =>
  error && OWN_ERRORS.includes(error.name)
    ? error.message
    : String(error?.name ?? "Error");

/** Say above everything else that the page is broken, once, however much fails. @param {any} error */
function confess(error) {
  page.querySelector("#broken")?.remove();
  page.prepend(h("p", { class: "problem", role: "alert", id: "broken" }, say("broken", { reason: reasonOf(error) })));
  page.setAttribute("aria-busy", "false");
  byId("loading")?.remove();
}

/** A result with a mark, a heading and a sentence. */
function outcome(mark, kind, title, note, ...rest) {
  return h(
    "section",
    { class: "card done", "aria-labelledby": "outcome" },
    h("span", { class: `tick ${kind}`, "aria-hidden": "true" }, mark),
    h("h2", { id: "outcome", tabindex: "-1" }, say(title)),
    h("p", {}, note),
    ...rest,
  );
}

function receipt(/** @type {any} */ entry) {
  const rows = [
    ["receipt", entry.batch],
    ["sentReport", shown(entry)],
    ["spent", `ε = ${Number(epsilonOf(collection).toPrecision(4))}`],
    ...["session", "slot"].filter((name) => entry.sealed?.[name]).map((name) => [name, entry.sealed[name]]),
  ];
  return h(
    "dl",
    {},
    ...rows.flatMap(([name, value]) => [
      h("dt", {}, say(name)),
      h("dd", { class: "number", "data-receipt": name }, h("code", {}, value)),
    ]),
  );
}

function after() {
  forget();
  const entry = participation?.entry();
  const retry = h("button", { type: "button", onclick: transmit }, say("retry"));
  if (entry.state === "preview")
    return outcome(
      "✓",
      "",
      "previewTitle",
      say("previewDone"),
      h("div", { class: "actions" }, back("button"), h("button", { type: "button", onclick: () => show("ask") }, say("again"))),
    );
  if (entry.state === "pending" && collection.shuffle) {
    const why = h("p", { class: "soft", id: "waits" }, waitsFor(entry, collection.shuffle, say));
    return outcome("…", "wait", "waitTitleShuffled", say("waitNoteShuffled"), why, retry, receipt(entry));
  }
  if (entry.state === "pending") return outcome("…", "wait", "waitTitle", say("waitNote"), retry, receipt(entry));
  if (entry.state === "refused")
    return outcome("!", "wait", "refusedTitle", say("refusedNote", { reason: entry.reason }));
  if (collection.shuffle) {
    const { minimum } = collection.shuffle;
    const note = returned ? say("answeredNoteShuffled") : say("sentNoteShuffled", { minimum });
    return outcome("✓", "", returned ? "answeredTitle" : "sentTitleShuffled", note, partOf(part, lookUp, say), receipt(entry));
  }
  return outcome(
    "✓",
    "",
    returned ? "answeredTitle" : "sentTitle",
    say(returned ? "answeredNote" : "sentNote"),
    receipt(entry),
  );
}

/** Find out whether the report took part. */
async function lookUp() {
  part = await /** @type {Participation} */ (participation).check();
  render();
  page.querySelector(".part button")?.focus();
}

function ledger() {
  if (preview || !participation) return null;
  const { rows, total } = participation.ledger();
  const cell = (/** @type {number} */ epsilon) =>
    h("td", { class: "right number" }, `ε = ${Number(epsilon.toPrecision(4))}`);
  const line = (/** @type {any} */ row) =>
    h("tr", {}, h("td", {}, text(row.title)), h("td", {}, say(`state_${row.state}`)), cell(row.epsilon));
  const table = h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, say("collection")),
        h("th", { scope: "col" }, say("state")),
        h("th", { scope: "col", class: "right" }, say("spent")),
      ),
    ),
    h("tbody", {}, ...rows.map(line)),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row", colspan: 2 }, say("total")), cell(total))),
  );
  const accounts = h("div");
  // Read when somebody looks: most devices have none, and the module that reads them is loaded for nobody else.
  const seen = async (/** @type {any} */ { target }) => {
    if (!target.open) return;
    const kept = await participation.accounts();
    note.hidden = !rows.length && kept.length > 0;
    accounts.replaceChildren(...accountTable(kept, say));
  };
  const note = h("p", { class: "soft" }, say(rows.length ? "ledgerNote" : "ledgerEmpty"));
  return h(
    "details",
    { class: "card ledger", open: view === "after", ontoggle: seen },
    h("summary", {}, say("ledgerTitle")),
    note,
    rows.length > 0 && table,
    accounts,
  );
}

function closed() {
  return outcome("■", "wait", "closedTitle", say("closedNote"));
}

/** Whether the answer was sent on an earlier visit. */
let returned = false;

function body() {
  if (view === "after") return [after()];
  if (view === "closed") return [closed()];
  if (view === "passed") return [outcome("■", "wait", "passedTitle", say("passedNote"))];
  if (view === "later")
    return [
      outcome(
        "…",
        "wait",
        "later",
        say("laterNote"),
        h("button", { type: "button", onclick: () => show("review") }, say("show")),
      ),
    ];
  if (view === "review") return [review()];
  return [promise(collection, say, preview ? undefined : `/c/${id}/privacy`), ...shuffling(), hindered ? blocked() : form()];
}

/** What shuffling adds, where reports are shuffled. */
function shuffling() {
  if (!collection.shuffle) return [];
  return [shufflePromise(collection, session, String(epsilonOf(collection)), say)];
}

/** In the place of the form where a report could not be sealed: there is no way on without. */
const blocked = () => outcome("!", "wait", "hinderedTitle", hindrance(hindered, say) || reasonOf(hindered));

/** From a preview back to where it is written. @param {string} look */
const back = (look) => h("a", { class: look, href: `/dashboard/collections/${id}` }, say("back"));

function render() {
  const banners = [
    preview && h("p", { class: "banner" }, say("preview"), " ", back("")),
    !preview &&
      view === "ask" &&
      collection.invitations &&
      !invitation() &&
      h("p", { class: "banner" }, say("invited")),
    !navigator.onLine && view === "ask" && h("p", { class: "banner" }, say("offline")),
  ];
  page.replaceChildren(heading(), ...banners.filter(Boolean), ...body(), ...[ledger()].filter(Boolean));
  page.setAttribute("aria-busy", "false");
}

/** Change what is shown and take the keyboard there. @param {string} next */
function show(next) {
  view = next;
  render();
  const target = page.querySelector("#review, #outcome");
  announce(target?.textContent ?? "");
  target?.focus();
  scrollTo(0, 0);
}

function firstView() {
  const entry = participation?.entry();
  returned = entry?.state === "sent";
  if (entry && entry.state !== "held") return "after";
  if (entry && entry.collection !== id && !preview) return "passed";
  if (published === "closed") return "closed";
  return entry ? "review" : "ask";
}

addEventListener("error", ({ error }) => confess(error));
addEventListener("unhandledrejection", ({ reason }) => confess(reason));

/** Without storage: browsers often refuse it to frames alone, so that there is a way on in a window of its own. */
const unable = () => [
  h("h1", {}, say("failedTitle")),
  h("p", { class: "problem" }, say("storage")),
  parent !== window && h("a", { class: "button primary", href: location.href, target: "_blank", rel: "noopener" }, say("ownWindow")),
];

async function start() {
  say = speaker(navigator.language.slice(0, 2));
  tellHeight();
  if (!participation) return page.replaceChildren(...unable().filter(Boolean));
  try {
    collection = await participation.open();
  } catch (error) {
    return page.replaceChildren(
      h("h1", {}, say("failedTitle")),
      h("p", { class: "problem", role: "alert" }, say("failedNote")),
      h("p", { class: "soft" }, reasonOf(error)),
    );
  }
  speak(preferred());
  view = firstView();
  if (collection.shuffle && !preview && view === "ask") await convene();
  render();
  addEventListener("offline", () => view === "ask" || render());
  const resend = () => participation.entry()?.state === "pending" && participation.send().then(() => show("after"));
  addEventListener("online", resend);
  resend();
  await keepUp();
}

/** Verify the session that takes reports now, before anything is asked. */
async function convene() {
  [session, hindered] = [null, null];
  try {
    session = await /** @type {Participation} */ (participation).session();
  } catch (error) {
    hindered = error;
  }
}

/** On a later visit: find out whether a sealed report took part; if its session was given up, send it in the next one. */
async function keepUp() {
  const entry = participation?.entry();
  if (!(participation instanceof Participation) || !entry?.sealed || entry.state !== "sent") return;
  if (!entry.sealed.took_part) await participation.send();
  // Where a relay hides this device from the shufflers, they are asked only if its owner wants that.
  if (!entry.sealed.relay) part = await participation.check();
  if (view === "after") render();
}

await start().catch((error) => {
  confess(error);
  throw error;
});
