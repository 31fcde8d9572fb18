/** The page for SQL: a table is chosen, a query is written, and the answer appears with its error bars. */

import { address, call } from "../page/api.js";
import { byId, h, inLanguage } from "../page/dom.js";
import { save, saying } from "../page/download.js";
import { count, trouble } from "../page/format.js";
import { answerCard, planCard } from "./results.js";
import { Editor } from "./sql_editor.js";
import { aboutColumn, examples } from "./sql_words.js";

const MOST_REMEMBERED = 20;
const LEVELS = [0.9, 0.95, 0.99];

const root = byId("query");
const given = new URLSearchParams(location.search);
const shared = given.has("share");

/** @type {any} */
let table;
/** @type {any[]} */
let tables = [];
let turn = 0;

const editor = new Editor("sql", () => run(false), () => complain(null));
const level = h(
  "select",
  { id: "level" },
  ...LEVELS.map((one) => h("option", { value: one, selected: one === 0.95 }, `${100 * one} %`)),
);
const problem = h("p", { class: "problem", id: "sql-problem", role: "alert", hidden: true });
const running = h("span", { class: "soft", id: "running", role: "status" });
const results = h("div", { id: "results", class: "stack", "aria-live": "polite" });
const side = h("div", { class: "stack" });
const runButton = h("button", { type: "button", class: "primary", onclick: () => run(false) }, "Run");
const explainButton = h("button", { type: "button", onclick: () => run(true) }, "Explain");

/** Ask the collector; a share link may only get. @param {string} end @param {string} sql @param {string} chosen */
function ask(end, sql, chosen) {
  const path = `collections/${table.collection}/query${end}`;
  if (!shared) return call("POST", path, { sql, level: Number(chosen) });
  return call("GET", `${path}?${new URLSearchParams({ sql, level: chosen })}`);
}

/** Say what is wrong, at its place; null for nothing. @param {any} error */
function complain(error) {
  problem.hidden = !error;
  problem.textContent = error ? error.message : "";
  editor.area.setAttribute("aria-invalid", String(Boolean(error)));
}

/** The same query with EXPLAIN before it, or without. @param {string} sql @param {boolean} plan */
const asked = (sql, plan) => (plan && !/^\s*explain\b/i.test(sql) ? `EXPLAIN ${sql}` : sql);

/** Show whether a query runs; the last answer stays, paler, until the next one is there. @param {boolean} yes */
function busy(yes) {
  running.textContent = yes ? "Running…" : "";
  results.setAttribute("aria-busy", String(yes));
}

/** Run what is written, or ask for its plan. @param {boolean} plan */
async function run(plan) {
  const typed = editor.value;
  const sql = asked(typed, plan);
  if (!typed.trim()) return refused(new Error("Write a query first, or choose an example."), 0);
  const mine = ++turn;
  complain(null);
  busy(true);
  const answer = await ask("", sql, level.value).catch((error) => ({ error }));
  if (mine !== turn) return undefined;
  busy(false);
  if (answer.error) return refused(answer.error, sql.length - typed.length);
  remember(typed);
  return answer.plan ? results.replaceChildren(planCard(answer)) : show(answer, typed);
}

/** An old answer must not stand below a new error. @param {any} error @param {number} added characters before what was typed */
function refused(error, added) {
  results.replaceChildren();
  complain(error);
  editor.point(Math.max(0, (error.problem?.position ?? 0) - added));
}

/** @param {any} answer @param {string} sql */
function show(answer, sql) {
  const chosen = level.value;
  const query = new URLSearchParams({ sql, level: chosen });
  const href = address(`collections/${table.collection}/query.csv?${query}`);
  const said = saying();
  const download = h("button", { type: "button", onclick: () => save(href, said) }, "Download CSV");
  const card = answerCard(answer, h("div", { class: "row" }, download, said));
  results.replaceChildren(card.element);
  card.draw();
}

/** Queries of this table that were run before, the last one first; they stay in this browser. @returns {string[]} */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(`tacit-queries-${table.collection}`) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {string[]} queries */
function keep(queries) {
  try {
    localStorage.setItem(`tacit-queries-${table.collection}`, JSON.stringify(queries));
  } catch {
    // A browser that stores nothing still answers queries.
  }
  byId("history").replaceChildren(...past(queries));
}

/** @param {string} sql */
const remember = (sql) => keep([sql, ...remembered().filter((one) => one !== sql)].slice(0, MOST_REMEMBERED));

/** @param {string[]} queries */
function past(queries) {
  const empty = "Queries that were answered appear here. They stay in this browser.";
  if (!queries.length) return [h("p", { class: "soft" }, empty)];
  const line = (/** @type {string} */ sql) => h("li", {}, use(sql, h("code", {}, sql.replace(/\s+/g, " "))));
  return [
    h("ul", { class: "queries" }, ...queries.map(line)),
    h("button", { type: "button", class: "quiet", onclick: () => keep([]) }, "Forget them"),
  ];
}

/** A button that puts a query into the editor. @param {string} sql @param {...any} children */
const use = (sql, ...children) =>
  h("button", { type: "button", class: "use", onclick: () => editor.write(sql) }, ...children);

/** @param {any} column */
function columnRow(column) {
  const insert = () => editor.insert(column.name);
  const name = h("button", { type: "button", class: "use", onclick: insert }, h("code", {}, column.name));
  const [look, word] = column.private ? ["warn", "private"] : ["still", "public"];
  const badge = h("span", { class: `pill ${look}` }, word);
  const some = column.labels.slice(0, 8).join(", ") + (column.labels.length > 8 ? ", …" : "");
  const about = column.private ? (column.labels.length ? some : column.domain) : column.type;
  return h("li", {}, h("div", { class: "row" }, name, badge), h("small", { title: aboutColumn(column) }, about));
}

/** @param {string} id @param {string} title @param {...any} children */
const panel = (id, title, ...children) =>
  h("section", { class: "card", "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);

/** Take a table. @param {any} chosen */
function take(chosen) {
  table = editor.table = chosen;
  const made = examples(table);
  side.replaceChildren(
    panel(
      "columns",
      "Columns",
      h("p", { class: "soft" }, "Private columns are known as noisy reports alone."),
      h("ul", { class: "columns" }, ...table.columns.map(columnRow)),
    ),
    panel(
      "examples",
      "Examples",
      h("ul", { class: "queries" }, ...made.map(({ title, sql }) => h("li", {}, use(sql, title)))),
    ),
    panel("history-panel", "History", h("div", { id: "history", class: "stack" }, ...past(remembered()))),
  );
  byId("rows").textContent = rowsText(table);
  results.replaceChildren();
  editor.write(remembered()[0] ?? made[0].sql);
}

/** @param {any} table */
function rowsText({ n, minimum_cohort: cohort }) {
  if (n >= cohort) return `${count(n)} rows.`;
  return `${count(n)} rows so far; queries are answered from ${count(cohort)} rows on.`;
}

function chooser() {
  const title = (/** @type {any} */ one) => `${one.name} (${inLanguage(one.title)})`;
  const select = h(
    "select",
    { id: "table", onchange: () => take(tables[select.selectedIndex]) },
    ...tables.map((one) => h("option", { value: one.collection, selected: one === table }, title(one))),
  );
  const rows = h("span", { class: "soft", id: "rows" });
  return h("div", { class: "row table-row" }, h("label", { for: "table" }, "Table"), select, rows);
}

function frame() {
  const help =
    "Ctrl and Enter runs the query, Ctrl and Space completes a word. Answers are aggregates; rows are never shown.";
  const levels = h("span", { class: "level" }, h("label", { for: "level" }, "Intervals of"), level);
  const controls = h("div", { class: "row" }, runButton, explainButton, levels, running);
  const card = h(
    "section",
    { class: "card", "aria-label": "Query" },
    chooser(),
    h("label", { for: "sql" }, "Query"),
    editor.element,
    problem,
    controls,
    h("p", { class: "soft", id: "sql-help" }, help),
  );
  root.replaceChildren(h("div", { class: "split" }, h("div", { class: "stack" }, card, results), side));
}

const nothing = () =>
  h(
    "div",
    { class: "card empty" },
    h("h2", {}, "No tables yet"),
    h("p", { class: "soft" }, "A collection whose reports come with rows of public columns appears here as a table."),
  );

async function start() {
  try {
    tables = (await call("GET", "tables")).tables;
  } catch (error) {
    return root.replaceChildren(trouble(/** @type {Error} */ (error), start));
  } finally {
    root.setAttribute("aria-busy", "false");
  }
  if (!tables.length) return root.replaceChildren(nothing());
  const wanted = tables.find(({ collection }) => collection === given.get("collection")) ?? tables[tables.length - 1];
  table = wanted;
  frame();
  return take(wanted);
}

await start();
