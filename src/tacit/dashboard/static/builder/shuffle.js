/** The terms of a shuffle in a draft, to read: they are written in a file or by the API, and kept as they are. */

import { h } from "../page/dom.js";
import { count } from "../page/format.js";

/** @param {any} party @param {string} role */
const line = ({ name, url, identity }, role) =>
  h(
    "tr",
    {},
    h("th", { scope: "row" }, role),
    h("td", {}, name, url && h("small", { class: "soft" }, url)),
    h("td", {}, identity ? h("code", { class: "id" }, identity) : ""),
  );

/** @param {string} name @param {any} value */
const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

/** The section of a shuffled draft; null for any other. @param {{model: any}} form */
export function shuffleTerms({ model: { shuffle: terms } }) {
  if (!terms) return null;
  const { mode, minimum, maximum, fakes, spot_checks: checks, delta, together, collector, relay, shufflers } = terms;
  const rows = [
    line(collector, "Collector"),
    ...(relay ? [line(relay, "Relay")] : []),
    ...shufflers.map((/** @type {any} */ party, /** @type {number} */ i) => line(party, `Shuffler ${i + 1}`)),
  ];
  return h(
    "section",
    { class: "card", id: "shuffle-terms", "aria-labelledby": "shuffle-title" },
    h("h2", { id: "shuffle-title" }, "Shuffling"),
    h(
      "p",
      { class: "soft" },
      "Reports are sealed for these parties, who mix them before the collector can open any. This part of a draft is written in a file or by the API; here it is shown, and kept as it is.",
    ),
    h(
      "dl",
      { class: "pairs" },
      pair("Mode", mode),
      pair("Respondents", `${count(minimum)} to ${count(maximum)}`),
      pair("Made-up reports", count(fakes)),
      pair("Spot checks", count(checks)),
      pair("Delta", delta),
      ...(together.length ? [pair("Run by one party", together.map((/** @type {string[]} */ group) => group.join(" and ")).join("; "))] : []),
    ),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Parties of the shuffle" },
      h(
        "table",
        { class: "parties" },
        h("caption", { class: "hidden-text" }, "Parties of the shuffle"),
        h("thead", {}, h("tr", {}, ...["Role", "Operator", "Identity"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, ...rows),
      ),
    ),
  );
}
