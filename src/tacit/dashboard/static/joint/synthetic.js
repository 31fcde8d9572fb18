/** Synthetic data as a download: made-up records, drawn from the tables that the reports gave. */

import { field } from "../page/inputs.js";
import { h } from "../page/dom.js";
import { save, saying } from "../page/download.js";

const WORDS =
  "Records of people who do not exist, drawn from the tables above. They cost no further privacy, and no line stands " +
  "for a respondent. Use them to try out programs; for results use the tables, which come with their errors.";
const MODELS = [
  ["tree", "Pairs along the tree"],
  ["views", "All tables that were asked"],
];
const MOST_ROWS = 100000;

/**
 * The form.
 * @param {(path: string) => string} address where a file below the tables is
 */
export function synthetic(address) {
  const rows = h("input", { id: "synthetic-rows", type: "number", min: 1, max: MOST_ROWS, step: 1, value: 1000 });
  const options = MODELS.map(([value, words]) => h("option", { value }, words));
  const model = h("select", { id: "synthetic-model" }, ...options);
  const said = saying();
  const fetchRows = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const seed = crypto.getRandomValues(new Uint32Array(1))[0];
    const wanted = new URLSearchParams({ rows: rows.value, model: model.value, seed: String(seed) });
    await save(address(`synthetic.csv?${wanted}`), said);
  };
  return h(
    "details",
    { class: "synthetic" },
    h("summary", {}, "Synthetic data"),
    h(
      "form",
      { class: "stack", onsubmit: fetchRows },
      h("p", { class: "soft" }, WORDS),
      h("div", { class: "pair" }, field("Number of records", rows), field("Drawn from", model)),
      h("div", { class: "row" }, h("button", { type: "submit" }, "Download CSV"), said),
    ),
  );
}
