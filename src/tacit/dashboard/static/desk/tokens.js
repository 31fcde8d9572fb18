/** Tokens: who may do what; make one, see it once, rotate or revoke it. */

import { call, copyFrom, notify } from "../page/api.js";
import { field } from "../page/inputs.js";
import { byId, h, inLanguage } from "../page/dom.js";
import { date, trouble, twice } from "../page/format.js";

const root = byId("tokens");
const SCOPES = [
  ["analyst", "Analyst: every answer"],
  ["reader", "Share link: one collection"],
  ["reporter", "Reporter: sends reports"],
  ["admin", "Admin: everything"],
];
const NAMES = Object.fromEntries(SCOPES.map(([scope, name]) => [scope, name.split(":")[0]]));

const fresh = h("div", { role: "status" });
const table = h("div", { class: "card flush" });

/** @param {any} made */
function shownOnce({ token, scope, collection }) {
  const link = scope === "reader" ? `${root.dataset.site}/dashboard/collections/${collection}?share=${token}` : token;
  const shown = h("input", { readonly: true, value: link, id: "fresh", class: "number" });
  const copy = () => copyFrom(shown);
  fresh.replaceChildren(
    h(
      "div",
      { class: "secret" },
      h(
        "label",
        { for: "fresh" },
        scope === "reader" ? "New share link, shown this once" : "New token, shown this once",
      ),
      h("div", { class: "copy" }, shown, h("button", { type: "button", onclick: copy }, "Copy")),
    ),
  );
  shown.focus();
  shown.select();
}

/** @param {() => Promise<any>} task */
async function attempt(task) {
  try {
    const made = await task();
    if (made?.token) shownOnce(made);
    await list();
  } catch (error) {
    notify(/** @type {Error} */ (error).message);
  }
}

/** @param {any} token */
function row({ id, scope, collection, label, expires }) {
  const rotate = () => attempt(() => call("POST", `tokens/${id}/rotate`, {}));
  const revoke = () => attempt(() => call("DELETE", `tokens/${id}`));
  const name = label || id;
  return h(
    "tr",
    {},
    h("td", {}, h("b", {}, label || "without a name"), h("small", {}, h("code", {}, id))),
    h("td", {}, NAMES[scope] ?? scope, collection && h("small", {}, `for ${collection.slice(0, 12)}…`)),
    h("td", { class: "hide-narrow" }, expires ? date(expires) : "never"),
    h(
      "td",
      { class: "right" },
      h("button", { type: "button", class: "quiet", title: `Rotate ${name}`, onclick: twice(rotate) }, "Rotate"),
      h("button", { type: "button", class: "quiet", title: `Revoke ${name}`, onclick: twice(revoke) }, "Revoke"),
    ),
  );
}

async function list() {
  const { tokens } = await call("GET", "tokens");
  const heads = [
    ["Token", ""],
    ["May", ""],
    ["Expires", "hide-narrow"],
  ].map(([name, kind]) => h("th", { scope: "col", class: kind }, name));
  const actions = h("th", { scope: "col" }, h("span", { class: "hidden-text" }, "Actions"));
  table.replaceChildren(
    h(
      "table",
      { class: "list" },
      h("caption", { class: "hidden-text" }, "Tokens"),
      h("thead", {}, h("tr", {}, ...heads, actions)),
      h("tbody", {}, ...tokens.map(row)),
    ),
  );
}

/** @param {any[]} collections */
function form(collections) {
  const options = collections
    .filter(({ state }) => state !== "draft")
    .map(({ id, title }) => h("option", { value: id }, inLanguage(title)));
  const fields = {
    label: h("input", { id: "label", maxlength: 80, placeholder: "Who or what uses it" }),
    scope: h("select", { id: "scope" }, ...SCOPES.map(([scope, name]) => h("option", { value: scope }, name))),
    collection: h("select", { id: "for" }, h("option", { value: "" }, "every collection"), ...options),
    days: h("input", { id: "days", type: "number", min: 0, max: 3650, value: 0 }),
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const { label, scope, collection, days } = fields;
    const wanted = { label: label.value, scope: scope.value, collection: collection.value, days: Number(days.value) };
    attempt(() => call("POST", "tokens", wanted));
    label.value = "";
  };
  return h(
    "form",
    { class: "card", onsubmit: submit },
    h("h2", {}, "New token"),
    h(
      "div",
      { class: "pair wide" },
      field("Name", fields.label),
      field("May", fields.scope),
      field("For", fields.collection),
      field("Days (0: for ever)", fields.days),
    ),
    h("div", {}, h("button", { class: "primary", type: "submit" }, "Make token")),
  );
}

async function start() {
  try {
    const { collections } = await call("GET", "collections");
    await list();
    root.replaceChildren(h("div", { class: "stack" }, fresh, table, form(collections)));
  } catch (error) {
    root.replaceChildren(trouble(/** @type {Error} */ (error), start));
  }
  root.setAttribute("aria-busy", "false");
}

await start();
