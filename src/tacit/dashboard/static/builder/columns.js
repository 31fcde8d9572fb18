/** The builder's public columns: what comes with every report as it is, for questions in SQL about both. */

import { check, field, select, text } from "../page/inputs.js";
import { h } from "../page/dom.js";

/** @typedef {import("../page/inputs.js").Form} Form */

const TYPES = [
  ["text", "Text"],
  ["integer", "A whole number"],
  ["number", "A number"],
  ["boolean", "Yes or no"],
  ["date", "A date"],
];
const WARNING =
  "Public columns are not protected: they are sent as they are, stored one by one and stay linked to the noisy " +
  "report. Use them for what is known anyway, such as a region or a day, never for what identifies somebody.";
const QUERIES =
  "One SELECT per line, such as SELECT region, COUNT(*) FROM visits WHERE age >= 30 GROUP BY region. Noise is " +
  "planned so that these come out best; others can be asked later too.";
const PURPOSE = "A survey needs none. They are for tables that somebody asks about in SQL: columns that need no protection, sent with every report.";
const RULE = "Lower-case letters, digits and underscores.";

/** @param {Form} form @param {any} column @param {number} place */
function line(form, column, place) {
  const { columns } = form.model;
  const remove = () => {
    columns.splice(place, 1);
    form.redraw();
  };
  const name = text(form, column, "name", `column-${place}`, { maxlength: 40, spellcheck: "false" });
  const leave = { type: "button", class: "quiet", onclick: remove, "aria-label": `Remove column ${place + 1}` };
  return h(
    "div",
    { class: "column-row" },
    field("Column", name),
    field("Holds", select(form, column, "type", `column-type-${place}`, TYPES)),
    columns.length > 1 && h("button", leave, "Remove"),
  );
}

/** The fields of a table that has public columns. @param {Form} form */
function fields(form) {
  const { model } = form;
  const add = () => {
    model.columns.push({ name: "", type: "text" });
    form.redraw();
    document.getElementById(`column-${model.columns.length - 1}`)?.focus();
  };
  return [
    h("p", { class: "banner-box", role: "note" }, WARNING),
    field("Name of the table", text(form, model, "table", "table", { maxlength: 40, spellcheck: "false" }), RULE),
    ...model.columns.map((/** @type {any} */ column, /** @type {number} */ i) => line(form, column, i)),
    h("div", {}, h("button", { type: "button", id: "add-column", onclick: add }, "Add a column")),
    field(
      "Queries that will be asked (may stay empty)",
      text(form, model, "queries", "queries", { tag: "textarea", spellcheck: "false" }),
      QUERIES,
    ),
  ];
}

/** The section. @param {Form} form */
export function publicColumns(form) {
  const { model } = form;
  // Switching it shows or hides fields, so the form is drawn anew.
  const box = check({ ...form, changed: () => form.redraw() }, model, "hasColumns", "Send public columns with every report");
  box.querySelector("input").id = "has-columns";
  return h(
    "section",
    { class: "card", "aria-labelledby": "columns-title" },
    h("h2", { id: "columns-title" }, "Public columns (advanced)"),
    !model.hasColumns && h("p", { class: "soft" }, PURPOSE),
    box,
    ...(model.hasColumns ? fields(form) : []),
  );
}
