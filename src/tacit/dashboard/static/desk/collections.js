/** The list of collections, with live counts. */

import { call, poll } from "../page/api.js";
import { byId, h, inLanguage } from "../page/dom.js";
import { count, epsilon, pill, trouble } from "../page/format.js";

const list = byId("list");
const admin = byId("main").dataset.scope === "admin";

const empty = () =>
  h(
    "div",
    { class: "card empty" },
    h("h2", {}, "No collections yet"),
    h(
      "p",
      { class: "soft" },
      "Write a question, choose how much noise protects every answer, and see beforehand how precise the result will be.",
    ),
    admin && h("a", { class: "button primary", href: "/dashboard/new" }, "Make the first one"),
  );

/** @param {any} item */
function row({ id, state, title, epsilon: spent, questions, round, shuffled, reports, damaged, minimum_cohort: cohort }) {
  const asked = round ? `round ${round} of a plan` : questions === 1 ? "1 question" : `${questions} questions`;
  const few = state !== "draft" && !damaged && reports < cohort;
  return h(
    "tr",
    {},
    h("td", {}, h("a", { href: `/dashboard/collections/${id}` }, inLanguage(title)), h("small", {}, asked)),
    h("td", {}, pill(state), damaged && h("small", {}, "damaged")),
    h(
      "td",
      { class: "right" },
      state === "draft" || damaged ? "—" : count(reports),
      few && h("small", {}, `answers from ${count(cohort)}`),
    ),
    h("td", { class: "right hide-narrow" }, epsilon(spent), shuffled && h("small", {}, "local; shuffled")),
  );
}

/** @param {any[]} items */
function table(items) {
  const head = [
    ["Collection", ""],
    ["State", ""],
    ["Reports", "right"],
    ["Epsilon", "right hide-narrow"],
  ];
  return h(
    "div",
    { class: "card flush" },
    h(
      "table",
      { class: "list" },
      h("caption", { class: "hidden-text" }, "Collections"),
      h("thead", {}, h("tr", {}, ...head.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
      h("tbody", {}, ...items.map(row)),
    ),
  );
}

let shown = "";

async function refresh() {
  try {
    const { collections } = await call("GET", "collections");
    const now = JSON.stringify(collections);
    // Redrawing what has not changed would take the keyboard away from its reader.
    if (now !== shown) list.replaceChildren(collections.length ? table(collections.reverse()) : empty());
    shown = now;
  } catch (error) {
    shown = "";
    list.replaceChildren(trouble(/** @type {Error} */ (error), refresh));
  }
  list.setAttribute("aria-busy", "false");
}

await poll(refresh, 3000);
