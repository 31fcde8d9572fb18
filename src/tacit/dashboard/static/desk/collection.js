/** One collection: live counts, charts with error bars, links, export, and the buttons that change its state. */

import { address as apiAddress, call, notify, poll } from "../page/api.js";
import { answerCard } from "../cards/answers.js";
import { askPeople, showOthers } from "../cards/ask_people.js";
import { byId, h, inLanguage } from "../page/dom.js";
import { downloads } from "../page/download.js";
import { count, epsilon, pill, reasonText, reports, trouble } from "../page/format.js";
import { GridCard } from "../ranges/grid.js";
import { IntegrityCard } from "../cards/integrity.js";
import { JointCard, hasTables } from "../joint/card.js";
import { PlanCard } from "../cards/plan.js";
import { RangeCard } from "../ranges/card.js";
import { RankedCard } from "../cards/ranked.js";
import { SessionCard } from "../cards/session.js";
import { perDay } from "../cards/days.js";
import { TrendCard } from "../cards/trend.js";

const root = byId("collection");
const { id, address } = root.dataset;
const admin = byId("main").dataset.scope === "admin";
const AGAIN = 5000;
const share = new URLSearchParams(location.search).get("share");

/** @type {any} */
let document_;
/** @type {Map<string, any>} */
const cards = new Map();
/** The method of post-processing that was chosen, by question. @type {Map<string, string>} */
const methods = new Map();
/** @type {PlanCard | undefined} */
let planCard;
/** @type {JointCard | undefined} */
let jointCard;
/** @type {SessionCard | undefined} */
let sessionCard;
/** @type {TrendCard | undefined} */
let trendCard;
/** @type {IntegrityCard | undefined} */
let integrityCard;
/** What is kept against whom, where reports are shuffled. @type {any} */
let claimed;
let answered = "";
let answeredAt = 0;
/** A search among many reports takes a while; it is not asked for again and again. */
let pause = AGAIN;

/** @param {any} status */
function facts({ reports: here, rejected, minimum_cohort: cohort, plan, damaged }) {
  /** @type {any[]} */
  const rounds = plan?.rounds ?? [{ reports: here }];
  const reports = rounds.reduce((sum, one) => sum + one.reports, 0);
  const refused = Object.values(rejected).reduce((sum, one) => sum + one, 0);
  const fact = (/** @type {any} */ big, /** @type {string} */ small, /** @type {any[]} */ ...more) =>
    h("div", {}, h("b", {}, big), h("span", {}, small), ...more);
  const few = !plan && !damaged && !document_.shuffle && reports < cohort;
  const meter =
    few &&
    h("progress", { class: "meter", max: cohort, value: reports, "aria-label": "Reports until answers are shown" });
  const counted = plan ? "reports counted in all rounds" : document_.shuffle ? "reports counted after the shuffle" : "reports counted";
  return h(
    "section",
    { class: "facts", "aria-label": "In short" },
    damaged
      ? fact("—", "what is stored is damaged")
      : fact(count(reports), few ? `reports of the ${count(cohort)} needed` : counted, meter),
    document_.shuffle ? shuffledFact(fact) : fact(epsilon(document_.epsilon), document_.windows ? "epsilon per report" : "epsilon per respondent"),
    fact(count(refused), "reports refused"),
    fact(`${count(document_.retention_days)} days`, document_.windows ? "until reports of a window are deleted" : "until reports are deleted"),
  );
}

/** Where reports are shuffled there are three epsilons. @param {(big: any, small: string) => any} fact */
function shuffledFact(fact) {
  const { collector = "…", others = "…", local = epsilon(document_.epsilon) } = claimed ?? {};
  const three = h("span", { class: "several" }, `${collector} · ${others} · ${local}`);
  return fact(three, "epsilon: collector alone · with all others · with shufflers");
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
    { class: "card", id: "invite", "aria-labelledby": "invite-title" },
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
  const file = (/** @type {string} */ name, /** @type {string} */ end) =>
    /** @type {[string, () => string]} */ ([name, () => apiAddress(`collections/${id}/answers${end}`)]);
  // A collector without pyarrow has no such file.
  const parquet = root.dataset.parquet === undefined ? [] : [file("Parquet", ".parquet")];
  return h(
    "section",
    { class: "card", "aria-labelledby": "export-title" },
    h("h2", { id: "export-title" }, "Export"),
    h("p", { class: "soft" }, "Every answer, raw and consistent, with its interval. Answers that are not shown yet are not in the files either."),
    downloads(file("JSON", ""), file("CSV", ".csv"), ...parquet),
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
        admin && !document_.plan && !document_.shuffle && closeButton(),
      ),
      h("div", { id: "facts" }),
      h("p", { id: "working", class: "working", role: "status", hidden: true }),
      h("div", { id: "plan" }),
      h("div", { id: "shuffle" }),
      h("div", { id: "joint" }),
      h("div", { id: "answers", class: "stack" }),
      h("div", { id: "integrity" }),
      askPeople({ id, address, document_, admin }),
      invitations(),
      showOthers({ id, address, admin }),
      h(
        "div",
        { class: "pair wide" },
        !document_.shuffle &&
          h(
            "section",
            { class: "card", "aria-labelledby": "days-title" },
            h("h2", { id: "days-title" }, "Reports per day"),
            h("div", { id: "days" }),
          ),
        h(
          "section",
          { class: "card", "aria-labelledby": "refused-title" },
          h("h2", { id: "refused-title" }, "Refused reports"),
          h("div", { id: "refused" }),
        ),
        !document_.rows && exporting(),
      ),
    ),
  );
  root.setAttribute("aria-busy", "false");
}

/** Show a question by another method. @param {string} name @param {string} method */
function processed(name, method) {
  methods.set(name, method);
  [answered, answeredAt] = ["", 0];
  refresh();
}

/** The card of a question, as its task wants it. @param {any} question */
function cardOf(question) {
  const process = (/** @type {string} */ method) => processed(question.name, method);
  const { name, domain } = document_.questions.find((/** @type {any} */ one) => one.name === question.name);
  const ask = (/** @type {string} */ query, /** @type {Record<string, any>} */ given) =>
    call("GET", `collections/${id}/questions/${name}/${query}?${new URLSearchParams(given)}`);
  if (["heavy_hitters", "items", "itemsets"].includes(question.task)) return new RankedCard(question, domain, ask);
  if (question.task !== "ranges") return answerCard(question, domain, process, ask);
  const Card = domain.kind === "product" ? GridCard : RangeCard;
  return new Card(question, domain, ask, process);
}

/** A card in place of answers that are not there yet. @param {string} words */
const notYet = (words) =>
  h("div", { class: "card empty" }, h("h2", {}, "Answers appear here"), h("p", { class: "soft" }, words));

/** Why there are no answers yet; empty if there are. @param {any} status */
function missing({ reports, minimum_cohort: cohort, plan, damaged, state }) {
  if (damaged) return "What is stored of this collection is damaged. Restore the collector's database from a backup.";
  if (plan) return plan.finished ? "" : "The plan is still asking; what it found is shown after its last round.";
  if (reports >= cohort) return "";
  if (document_.shuffle && state !== "closed") return "Reports are sealed, and reach the collector all at once, after the session was closed and shuffled.";
  const left = count(cohort - reports);
  return `Nothing is shown before ${count(cohort)} reports are in, so that no small group can be singled out. ${left} to go.`;
}

/** What is shown in place of answers where reports are kept with public columns: they are asked for in SQL. */
function inSql() {
  const { table, columns } = document_.rows;
  const names = (/** @type {any[]} */ all) => all.map(({ name }) => name).join(", ");
  const where = new URLSearchParams({ collection: id, ...(share && { share }) });
  const pair = (/** @type {string} */ name, /** @type {string} */ value) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h(
    "section",
    { class: "card", "aria-labelledby": "sql-title" },
    h("h2", { id: "sql-title" }, "Answers in SQL"),
    h("p", { class: "soft" }, "Every report is kept with its public columns. Ask about both together; numbers come with their intervals."),
    h(
      "dl",
      { class: "pairs" },
      pair("Table", table),
      pair("Private columns", names(document_.questions)),
      pair("Public columns", names(columns)),
    ),
    h("div", {}, h("a", { class: "button primary", href: `/dashboard/query?${where}` }, "Write a query")),
  );
}

/** Answers by name of the question, each by the method that was chosen for it. */
async function fetchAnswers() {
  const get = (/** @type {string} */ more) => call("GET", `collections/${id}/answers?level=0.95${more}`);
  const { questions, level } = await get("");
  const shown = new Map(questions.map((/** @type {any} */ one) => [one.name, one]));
  for (const method of new Set(methods.values())) {
    const others = (await get(`&post=${method}`)).questions;
    for (const one of others) if (methods.get(one.name) === method) shown.set(one.name, one);
  }
  return { shown, level };
}

/** @param {any} status */
async function showAnswers(status) {
  const box = byId("answers");
  const words = missing(status);
  if (words) return box.replaceChildren(notYet(words));
  if (document_.rows) return box.childElementCount && !box.querySelector(".empty") ? undefined : box.replaceChildren(inSql());
  const now = `${status.reports} ${status.plan?.finished}`;
  if (now === answered || Date.now() - answeredAt < pause) return undefined;
  [answered, answeredAt] = [now, Date.now()];
  try {
    await compute(status.reports);
  } catch (error) {
    // Asked for again after a pause, even if no report comes in meanwhile.
    answered = "";
    throw error;
  } finally {
    working("");
  }
  pause = Math.max(AGAIN, 5 * (Date.now() - answeredAt));
  return undefined;
}

/** Say what the collector computes, the first time that somebody waits for it; empty when it is done. @param {string} words */
function working(words) {
  const line = byId("working");
  line.textContent = words;
  line.hidden = !words;
  byId("answers").setAttribute("aria-busy", String(Boolean(words)));
}

/** Grey bars in place of the cards that are being computed. */
const skeleton = () =>
  h("div", { class: "card skeleton", "aria-hidden": "true" }, ...["long", "short", "middle", "short"].map((one) => h("i", { class: one })));

/** Ask for everything that is shown, one after the other, since each takes the collector a while. @param {number} n reports */
async function compute(n) {
  const box = byId("answers");
  const first = !cards.size;
  if (first) {
    working(`Computing the answers from ${reports(n)}…`);
    box.replaceChildren(skeleton());
  }
  const { shown, level } = await fetchAnswers();
  if (first) box.replaceChildren();
  for (const [name, question] of shown) {
    if (!cards.has(name)) {
      cards.set(name, cardOf(question));
      box.append(cards.get(name).element);
    }
    cards.get(name).update({ ...question, minimum: document_.minimum_cohort }, level);
  }
  if (first && hasTables(document_)) working("Computing tables of several questions…");
  await showTables(level);
  if (first && document_.windows) working("Computing the trend…");
  await showTrend();
  if (first && !document_.plan && !document_.windows) working("Looking for forged reports…");
  await showIntegrity();
}

/** Tables of several questions, where they were asked together. @param {number} level */
async function showTables(level) {
  if (!hasTables(document_)) return;
  if (!jointCard) {
    const path = `collections/${id}/joint/`;
    const ask = (/** @type {string} */ query, /** @type {Record<string, any>} */ given) =>
      call("GET", `${path}${query}?${new URLSearchParams(given)}`);
    jointCard = new JointCard(document_, ask, (wanted) => apiAddress(path + wanted));
    byId("joint").replaceChildren(jointCard.element);
  }
  await jointCard.update(level);
}

/** The trend, where the question is asked again and again. */
async function showTrend() {
  if (!document_.windows) return;
  if (!trendCard) {
    trendCard = new TrendCard(id, document_);
    byId("joint").replaceChildren(trendCard.element);
  }
  await trendCard.update();
}

/** Whether reports look forged; rounds of a plan are looked at one by one, and windows are not. */
async function showIntegrity() {
  if (document_.plan || document_.windows) return;
  const found = await call("GET", `collections/${id}/integrity`);
  if (!integrityCard) {
    integrityCard = new IntegrityCard();
    byId("integrity").replaceChildren(integrityCard.element);
  }
  integrityCard.update(found);
}

/** The rounds of an adaptive plan. @param {any} plan */
function showPlan(plan) {
  if (!planCard) {
    planCard = new PlanCard(id, address, admin, refresh);
    byId("plan").replaceChildren(planCard.element);
  }
  planCard.update(plan);
}

let sessionAt = 0;

/** The session of a shuffled collection; shufflers are asked as well, so not every time. @param {boolean} [now] */
async function showSession(now = false) {
  if (!document_.shuffle || (!now && Date.now() - sessionAt < AGAIN)) return;
  const status = await call("GET", `collections/${id}/session`);
  sessionAt = Date.now();
  if (!sessionCard) {
    sessionCard = new SessionCard(id, document_.shuffle, admin, () => void showSession(true));
    byId("shuffle").replaceChildren(sessionCard.element);
  }
  sessionCard.update(status);
  if (JSON.stringify(status.epsilon) !== JSON.stringify(claimed)) [claimed, lastStatus] = [status.epsilon, ""];
}

let lastStatus = "";

async function refresh() {
  try {
    if (!document_) {
      document_ = (await call("GET", `collections/${id}`)).document;
      frame();
    }
    await showSession();
    const status = await call("GET", `collections/${id}/status`);
    if (JSON.stringify(status) !== lastStatus) {
      lastStatus = JSON.stringify(status);
      byId("facts").replaceChildren(facts(status));
      const over = status.plan ? status.plan.finished : status.state === "closed";
      byId("state").replaceChildren(pill(over ? "closed" : "published"));
      // Nobody can be asked any more.
      for (const card of ["share", "invite"]) byId(card)?.toggleAttribute("hidden", over);
      if (status.plan) showPlan(status.plan);
      byId("refused").replaceChildren(refusals(status.rejected));
      byId("days")?.replaceChildren(perDay(status.days));
      byId("close")?.toggleAttribute("hidden", status.state === "closed");
    }
    await showAnswers(status);
  } catch (error) {
    if (document_) notify(/** @type {Error} */ (error).message);
    else root.replaceChildren(trouble(/** @type {Error} */ (error), refresh));
  }
}

await poll(refresh, 2000);
