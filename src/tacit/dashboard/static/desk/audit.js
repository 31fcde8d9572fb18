/** The audit log. */

import { call } from "../page/api.js";
import { byId, h, scrolled } from "../page/dom.js";
import { date, trouble } from "../page/format.js";

const root = byId("audit");

/** What an action was about: a collection can be opened, a token cannot. @param {string} subject */
function about(subject) {
  const short = h("code", {}, subject.length > 16 ? `${subject.slice(0, 12)}…` : subject);
  return /^([0-9a-f]{64}|draft-.*)$/.test(subject)
    ? h("a", { href: `/dashboard/collections/${subject}` }, short)
    : short;
}

/** @param {any} entry */
const row = ({ day, actor, action, subject }) =>
  h(
    "tr",
    {},
    h("td", { class: "whole" }, date(day)),
    h("td", {}, actor),
    h("td", {}, action),
    h("td", { title: subject }, about(subject)),
  );

async function start() {
  try {
    const { entries } = await call("GET", "audit");
    const heads = ["Day", "Who", "Did", "To"].map((name) => h("th", { scope: "col" }, name));
    const table = h(
      "table",
      {},
      h("caption", { class: "hidden-text" }, "Actions of operators"),
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...entries.map(row)),
    );
    const empty = h(
      "div",
      { class: "card empty" },
      h("h2", {}, "Nothing has happened yet"),
      h("p", { class: "soft" }, "Publishing, closing and changes of tokens are noted here."),
    );
    root.replaceChildren(
      entries.length
        ? h(
            "div",
            { class: "card flush" },
            scrolled("Audit log", table),
          )
        : empty,
    );
  } catch (error) {
    root.replaceChildren(trouble(/** @type {Error} */ (error), start));
  }
  root.setAttribute("aria-busy", "false");
}

await start();
