/** One collection: live counts, charts with error bars, links, export, and the buttons that change its state. */

import { address as apiAddress, call, copyFrom, notify, poll } from "./api.js";
import { answerCard } from "./answers.js";
import { RangeCard } from "./range_card.js";
import { byId, h, inLanguage } from "./dom.js";
import { count, epsilon, pill, reasonText, trouble } from "./format.js";

const root = byId("collection");
const { id, address } = root.dataset;
const admin = byId("main").dataset.scope === "admin";
const AGAIN = 5000;

/** @type {any} */
let document_;
/** @type {Map<string, any>} */
const cards = new Map();
let answered = -1;
let answeredAt = 0;

/** @param {string} name @param {string} value @param {string} id */
function copyField(name, value, id) {
  const copy = () => copyFrom(byId(id));
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, name),
    h(
      "div",
      { class: "copy" },
      h("input", { id, readonly: true, value }),
      h("button", { type: "button", onclick: copy, "aria-label": `Copy ${name.toLowerCase()}` }, "Copy"),
    ),
  );
}

function sharing() {
  const embed = `<iframe src="${address}" title="${inLanguage(document_.title).replaceAll('"', "&quot;")}" width="100%" height="720"></iframe>`;
  const where = document_.origins.length
    ? `It may be shown on ${document_.origins.join(", ")}.`
    : "The document names no other site that may show it; add its origin before publishing.";
  return h(
    "section",
    { class: "card", "aria-labelledby": "share-title" },
    h("h2", { id: "share-title" }, "Ask people"),
    h(
      "div",
      { class: "share-grid" },
      h("img", { src: `/c/${id}/qr.svg`, alt: "QR code with the address of the survey", width: 144, height: 144 }),
      h(
        "div",
        { class: "stack" },
        copyField("Link", address, "link"),
        copyField("Embed", embed, "embed"),
        h("p", { class: "soft" }, where),
      ),
    ),
    h(
      "div",
      { class: "row" },
      h("a", { class: "button", href: address }, "Open the survey"),
      h("a", { class: "button", href: `/c/${id}/privacy` }, "Privacy page"),
    ),
  );
}

/** @param {any} status */
function facts({ reports, rejected, minimum_cohort: cohort }) {
  const refused = Object.values(rejected).reduce((sum, one) => sum + one, 0);
  const fact = (/** @type {any} */ big, /** @type {string} */ small, /** @type {any[]} */ ...more) =>
    h("div", {}, h("b", {}, big), h("span", {}, small), ...more);
  const meter =
    reports < cohort &&
    h("progress", { class: "meter", max: cohort, value: reports, "aria-label": "Reports until answers are shown" });
  return h(
    "section",
    { class: "facts", "aria-label": "In short" },
    fact(count(reports), reports < cohort ? `reports of the ${count(cohort)} needed` : "reports counted", meter),
    fact(epsilon(document_.epsilon), "epsilon per respondent"),
    fact(count(refused), "reports refused"),
    fact(`${count(document_.retention_days)} days`, "until reports are deleted"),
  );
}

/** @param {Record<string, number>} rejected */
function refusals(rejected) {
  const reasons = Object.entries(rejected).sort((a, b) => b[1] - a[1]);
  if (!reasons.length) return h("p", { class: "soft" }, "None so far.");
  const rows = reasons.map(([reason, reports]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, reasonText(reason), h("small", { class: "soft" }, ` ${reason}`)),
      h("td", { class: "right" }, count(reports)),
    ),
  );
  return h(
    "table",
    {},
    h("caption", { class: "hidden-text" }, "Refused reports by reason"),
    h(
      "thead",
      {},
      h("tr", {}, h("th", { scope: "col" }, "Reason"), h("th", { scope: "col", class: "right" }, "Reports")),
    ),
    h("tbody", {}, ...rows),
  );
}

/** Links that work once each, for a collection that asks for invitations. */
function invitations() {
  if (!document_.invitations || !admin) return null;
  const many = h("input", { id: "many", type: "number", min: 1, max: 100000, value: 10 });
  const made = h("textarea", {
    id: "made",
    readonly: true,
    hidden: true,
    "aria-label": "New invitation links, one per line",
    rows: 8,
  });
  const make = async () => {
    try {
      const reply = await call("POST", `collections/${id}/invitations`, { count: Number(many.value) });
      made.value = reply.invitations.map((/** @type {string} */ one) => `${address}#invitation=${one}`).join("\n");
      made.hidden = false;
      made.focus();
      made.select();
    } catch (error) {
      notify(/** @type {Error} */ (error).message);
    }
  };
  return h(
    "section",
    { class: "card", "aria-labelledby": "invite-title" },
    h("h2", { id: "invite-title" }, "Invitations"),
    h("p", { class: "soft" }, "Every link takes in one report. They are shown this once; copy them."),
    h(
      "div",
      { class: "row" },
      h("label", { for: "many" }, "How many"),
      h("div", {}, many),
      h("button", { type: "button", onclick: make }, "Make links"),
    ),
    made,
  );
}

function exporting() {
  const link = (/** @type {string} */ end, /** @type {string} */ name) =>
    h("a", { class: "button", href: apiAddress(`collections/${id}/answers${end}`), download: true }, name);
  return h(
    "section",
    { class: "card", "aria-labelledby": "export-title" },
    h("h2", { id: "export-title" }, "Export"),
    h("p", { class: "soft" }, "Every answer, raw and consistent, with its interval."),
    h("div", { class: "row" }, link("", "JSON"), link(".csv", "CSV"), link(".parquet", "Parquet")),
  );
}

function closeButton() {
  const dialog = byId("confirm");
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue !== "yes") return;
    try {
      await call("POST", `collections/${id}/close`, {});
      notify("The collection is closed.");
      await refresh();
    } catch (error) {
      notify(/** @type {Error} */ (error).message);
    }
  });
  return h(
    "button",
    { type: "button", class: "danger", id: "close", onclick: () => dialog.showModal() },
    "Close collection",
  );
}

function frame() {
  const title = inLanguage(document_.title);
  document.title = `${title} · Tacit`;
  const about = inLanguage(document_.about);
  root.replaceChildren(
    h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "heading" },
        h(
          "div",
          { class: "stack" },
          h("div", { class: "row" }, h("h1", {}, title), h("span", { id: "state" })),
          about !== title && h("p", { class: "lead" }, about),
        ),
        admin && closeButton(),
      ),
      h("div", { id: "facts" }),
      h("div", { id: "answers", class: "stack" }),
      sharing(),
      invitations(),
      h(
        "div",
        { class: "pair" },
        h(
          "section",
          { class: "card", "aria-labelledby": "refused-title" },
          h("h2", { id: "refused-title" }, "Refused reports"),
          h("div", { id: "refused" }),
        ),
        exporting(),
      ),
    ),
  );
  root.setAttribute("aria-busy", "false");
}

/** The card of a question, as its task wants it. @param {any} question */
function cardOf(question) {
  if (question.task !== "ranges") return answerCard(question);
  const { name, domain } = document_.questions.find((/** @type {any} */ one) => one.name === question.name);
  const ask = (/** @type {string} */ query, /** @type {Record<string, any>} */ given) =>
    call("GET", `collections/${id}/questions/${name}/${query}?${new URLSearchParams(given)}`);
  return new RangeCard(question, domain, ask);
}

/** @param {any} status */
async function showAnswers({ reports, minimum_cohort: cohort }) {
  const box = byId("answers");
  if (reports < cohort) {
    const left = count(cohort - reports);
    return box.replaceChildren(
      h(
        "div",
        { class: "card empty" },
        h("h2", {}, "Answers appear here"),
        h(
          "p",
          { class: "soft" },
          `Nothing is shown before ${count(cohort)} reports are in, so that no small group can be singled out. ${left} to go.`,
        ),
      ),
    );
  }
  if (reports === answered || Date.now() - answeredAt < AGAIN) return undefined;
  [answered, answeredAt] = [reports, Date.now()];
  const { questions, level } = await call("GET", `collections/${id}/answers?level=0.95`);
  if (!cards.size) box.replaceChildren();
  for (const question of questions) {
    if (!cards.has(question.name)) {
      cards.set(question.name, cardOf(question));
      box.append(cards.get(question.name).element);
    }
    cards.get(question.name).update(question, level);
  }
  return undefined;
}

let lastStatus = "";

async function refresh() {
  try {
    if (!document_) {
      document_ = (await call("GET", `collections/${id}`)).document;
      frame();
    }
    const status = await call("GET", `collections/${id}/status`);
    if (JSON.stringify(status) !== lastStatus) {
      lastStatus = JSON.stringify(status);
      byId("facts").replaceChildren(facts(status));
      byId("state").replaceChildren(pill(status.state));
      byId("refused").replaceChildren(refusals(status.rejected));
      byId("close")?.toggleAttribute("hidden", status.state === "closed");
    }
    await showAnswers(status);
  } catch (error) {
    if (document_) notify(/** @type {Error} */ (error).message);
    else root.replaceChildren(trouble(/** @type {Error} */ (error), refresh));
  }
}

await poll(refresh, 2000);
