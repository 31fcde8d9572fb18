/** Whether the reports of a collection look forged: what was seen, what a repair would say, and how far forgery goes. */

import { h, scrolled } from "../page/dom.js";
import { label, percent, probability, reports } from "../page/format.js";

const STATES = /** @type {Record<string, string[]>} */ ({
  quiet: ["good", "Quiet"],
  look: ["warn", "Worth a look"],
  alarm: ["bad", "Alarm"],
});

const SUMMARY = /** @type {Record<string, string>} */ ({
  quiet: "Nothing in these reports looks forged.",
  look: "Something is unusual. It may be chance; look again when more reports are in.",
  alarm: "Some of these reports look forged. Honest reports raise an alarm in at most 1 of 100 collections.",
});

/** What each detector has seen, and what it looks at, in words. */
const SEEN = /** @type {Record<string, string[]>} */ ({
  det_sum: ["Reports support more or fewer answers in total than honest ones do.", "how many answers are supported in total"],
  det_ones: ["The numbers of answers that single reports support are not those of honest reports.", "how many answers each report supports"],
  det_seed: ["The random numbers in the reports are not drawn evenly.", "random numbers of reports"],
  det_bucket: ["The encoded answers are not spread evenly.", "spread of encoded answers"],
  det_repeat: ["The same random numbers appear again and again.", "random numbers that repeat"],
  det_cosup: ["Some answers are supported together by more reports than any honest crowd would send.", "answers that are supported together"],
});

const LOOKED_AT = /** @type {Record<string, string>} */ ({
  sums: "Looked at: sums that were counted with the reports, which were then deleted.",
  reports: "Looked at: the reports themselves, which the document keeps until the collection is closed.",
  log: "Looked at: the reports themselves, from which answers to these questions are computed.",
  nothing: "Reports of this kind have nothing in them by which forged ones would show, so that nobody can tell.",
});

/** What detectors found, the least likely first. @param {any} found @returns {any[]} */
const findingsOf = ({ inspections }) =>
  inspections
    .flatMap((/** @type {any} */ look) =>
      look.findings.map((/** @type {any} */ one) => ({ ...one, odd: look.state !== "quiet" && one.state !== "quiet" })),
    )
    .sort((/** @type {any} */ a, /** @type {any} */ b) => a.p_value - b.p_value);

/** @param {string} caption @param {any[]} head @param {any[]} rows */
const table = (caption, head, rows) =>
  scrolled(
    caption,
    h(
      "table",
      { class: "wraps" },
      h("caption", { class: "hidden-text" }, caption),
      h("thead", {}, h("tr", {}, ...head.map((name, i) => h("th", { scope: "col", class: i ? "right" : null }, name)))),
      h("tbody", {}, ...rows),
    ),
  );

/** Raw against repaired. @param {any} repair */
function repaired({ method, fakes, rows }) {
  const lines = rows.map((/** @type {any} */ { value, raw, repaired: left, standard_error: error }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, label(value)),
      h("td", { class: "right" }, percent(raw, error)),
      h("td", { class: "right" }, `${percent(left, error)} ± ${percent(1.96 * error, error)}`),
    ),
  );
  return h(
    "div",
    { class: "stack" },
    h("h3", {}, "Raw against repaired"),
    h(
      "p",
      { class: "soft" },
      `Without about ${reports(Math.round(fakes))} that look forged (${method}). Answers and exports stay raw: nothing is changed by itself.`,
    ),
    table("Raw against repaired shares", ["Answer", "Raw", "Repaired, 95 %"], lines),
  );
}

/** @param {any[]} findings */
function details(findings) {
  const rows = findings.map(({ detector, p_value: p, state }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, SEEN[detector]?.[1] ?? detector, h("small", { class: "soft" }, ` ${detector}`)),
      h("td", { class: "right" }, `p ${probability(p)}`),
      h("td", { class: "right" }, STATES[state]?.[1] ?? state),
    ),
  );
  return h("details", {}, h("summary", {}, "What was looked at"), table("Detectors", ["Detector", "Chance", "State"], rows));
}

/** How far forged reports could push, whether they show or not. @param {any} influence */
const bound = (influence) =>
  h(
    "p",
    {},
    `If ${percent(influence.coalition_share)} of all reports were forged, a share could move by at most `,
    h("b", {}, percent(influence.coalition)),
    ", whether it shows or not.",
  );

/** The card; shown as soon as there are answers. */
export class IntegrityCard {
  constructor() {
    this.state = h("span", { class: "pill", id: "integrity-state" });
    this.body = h("div", { class: "stack" });
    this.element = h(
      "section",
      { class: "card integrity", "aria-labelledby": "integrity-title" },
      h("div", { class: "question-head" }, h("h2", { id: "integrity-title" }, "Integrity"), this.state),
      this.body,
    );
  }

  /** @param {any} found what the collector says */
  update(found) {
    const findings = findingsOf(found);
    const odd = findings.filter((one) => one.odd);
    const [look, name] = found.looked_at === "nothing" ? ["", "Not checkable"] : (STATES[found.state] ?? ["", found.state]);
    this.state.className = `pill ${look}`;
    this.state.textContent = name;
    this.body.replaceChildren(
      ...[
        found.looked_at !== "nothing" && h("p", { class: "lead" }, SUMMARY[found.state]),
        odd.length > 0 && h("ul", { class: "remarks" }, ...odd.map(({ detector }) => h("li", {}, SEEN[detector]?.[0] ?? detector))),
        found.hot.length > 0 && h("p", {}, "Pushed together: ", h("b", {}, found.hot.map(label).join(", ")), "."),
        found.repair && repaired(found.repair),
        ...(found.influence ? [bound(found.influence)] : []),
        h("p", { class: "soft" }, LOOKED_AT[found.looked_at] ?? ""),
        findings.length > 0 && details(findings),
      ].filter(Boolean),
    );
  }
}
