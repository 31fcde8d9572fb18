/** Synthetic data as a download: made-up records, drawn from the tables that the reports gave. */

import { field } from "./builder_inputs.js";
import { h } from "./dom.js";

const WORDS =
  "Records of people who do not exist, drawn from the tables above. They cost no further privacy, and no line stands " +
  "for a respondent. Use them to try out programs; for results use the tables, which come with their errors.";
const MODELS = [
  ["tree", "Pairs along the tree"],
  ["views", "All tables that were asked"],
];
const MOST_ROWS = 100000;

/** Hand a file to the browser. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * The form.
 * @param {(path: string) => Promise<Response>} download
 */
export function synthetic(download) {
  const rows = h("input", { id: "synthetic-rows", type: "number", min: 1, max: MOST_ROWS, step: 1, value: 1000 });
  const options = MODELS.map(([value, words]) => h("option", { value }, words));
  const model = h("select", { id: "synthetic-model" }, ...options);
  const said = h("p", { class: "soft", role: "status" });
  const fetchRows = async (/** @type {Event} */ event) => {
    event.preventDefault();
    said.textContent = "Drawing…";
    const seed = crypto.getRandomValues(new Uint32Array(1))[0];
    const wanted = new URLSearchParams({ rows: rows.value, model: model.value, seed: String(seed) });
    const reply = await download(`synthetic.csv?${wanted}`).catch(() => null);
    const name = /filename="([^"]+)"/.exec(reply?.headers.get("Content-Disposition") ?? "")?.[1] ?? "synthetic.csv";
    if (reply?.ok) save(await reply.blob(), name);
    const problem = reply && !reply.ok ? await reply.json().catch(() => null) : null;
    said.textContent = reply?.ok ? `Saved as ${name}.` : (problem?.detail ?? "The collector cannot be reached.");
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
