/** Public columns on the survey page: plain fields, sent as they are, each of which may be left empty. */

import { h, spoken } from "../page/dom.js";

const MAX_TEXT = 256;
const MAX_NUMBER = 1e12;

/** @typedef {(key: string, values?: Record<string, any>) => string} Say */

/** Looks and behaviour of an input, by the type of its column. */
const INPUTS = /** @type {Record<string, Record<string, any>>} */ ({
  integer: { type: "number", step: 1, min: -MAX_NUMBER, max: MAX_NUMBER },
  number: { type: "number", step: "any", min: -MAX_NUMBER, max: MAX_NUMBER },
  text: { type: "text", maxlength: MAX_TEXT },
  date: { type: "date", min: "0001-01-01", max: "9999-12-31" },
});

/** What a column holds, in words. @param {any} value @param {Say} say */
export function columnText(value, say) {
  if (value === null || value === undefined) return say("col_empty");
  return typeof value === "boolean" ? say(value ? "yes" : "no") : String(value);
}

/** @param {string} type @param {any} attributes @param {Say} say */
function inputOf(type, attributes, say) {
  if (type !== "boolean") return h("input", { autocomplete: "off", ...INPUTS[type], ...attributes });
  const options = [["", "–"], ["true", say("yes")], ["false", say("no")]];
  return h("select", attributes, ...options.map(([value, words]) => h("option", { value }, words)));
}

/** The value of a column; null if it was left empty. @param {string} type @param {string} text */
function valueOf(type, text) {
  if (text === "") return null;
  if (type === "boolean") return text === "true";
  return type === "integer" || type === "number" ? Number(text) : text;
}

/** One column. @param {{name: string, type: string}} column @param {Say} say */
function column({ name, type }, say) {
  const ids = [`column-${name}`, `column-${name}-hint`, `column-${name}-error`];
  const hint = say(`col_${type}`);
  const input = inputOf(type, { id: ids[0], name: `column-${name}`, "aria-describedby": ids.slice(1).join(" ") }, say);
  const error = h("p", { class: "error", id: ids[2] });
  const complain = (/** @type {string} */ words) => {
    error.textContent = words;
    input.setAttribute("aria-invalid", String(Boolean(words)));
  };
  input.addEventListener("input", () => error.textContent && complain(""));
  return {
    name,
    element: h(
      "div",
      {},
      h("label", { for: ids[0] }, spoken(name)),
      input,
      h("p", { class: "hint", id: ids[1] }, hint),
      error,
    ),
    focus: input,
    complain,
    // A half-written number or date is an empty value, which must not pass for a column that was left empty.
    fits: () => input.checkValidity() && !input.validity.badInput,
    read: () => valueOf(type, input.value.trim()),
    keep: () => input.value,
    restore: (/** @type {string} */ kept) => (input.value = kept),
  };
}

/**
 * The fields of the public columns.
 * @param {{columns: {name: string, type: string}[]} | null | undefined} rows
 * @param {Say} say
 */
export function publicFields(rows, say) {
  const fields = (rows?.columns ?? []).map((one) => column(one, say));
  const element = fields.length
    ? h(
        "section",
        { class: "card public", "aria-labelledby": "columns" },
        h("h2", { id: "columns" }, say("columnsTitle")),
        h("p", { class: "open-note" }, say("columnsNote")),
        h("div", { class: "columns" }, ...fields.map((one) => one.element)),
      )
    : null;
  return { fields, element, read: () => Object.fromEntries(fields.map((one) => [one.name, one.read()])) };
}

/**
 * The public columns of a report that is shown before it is sent.
 * @param {Record<string, any> | null | undefined} row
 * @param {Say} say
 */
export function sentColumns(row, say) {
  if (!row) return null;
  const lines = Object.entries(row).flatMap(([name, value]) => [
    h("dt", {}, spoken(name)),
    h("dd", { "data-column": name, class: value === null ? "soft" : null }, columnText(value, say)),
  ]);
  return h("div", { class: "open-note" }, h("h3", {}, say("sentColumns")), h("dl", {}, ...lines));
}
