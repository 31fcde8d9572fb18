/** Form fields for every kind of domain. Each field knows how to read an answer that the domain can encode. */

import { h } from "../page/dom.js";
import { optionalField } from "./optional_field.js";
import { setField } from "./set_field.js";
import { textField } from "./text_field.js";

const MOST_RADIOS = 8;
const MOST_BUCKETS = 12;
const MOST_BOXES = 16;

/**
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {() => any} read the answer, or undefined if there is none
 * @property {HTMLElement} focus where the keyboard goes when the answer is wrong
 * @property {() => string} [why] what is wrong with an answer that the domain refuses
 * @property {() => any} [keep] what is filled in, for the same field in another language
 * @property {(kept: any) => void} [restore]
 * @typedef {(key: string, values?: Record<string, any>) => string} Say
 */

/** @param {any} bucket @param {number} place @returns {string} a number that lies in a bucket, as exact decimal text */
export function inside({ edges, open_below: openBelow }, place) {
  const edge = edges[Math.max(0, place - Number(openBelow))];
  if (!openBelow || place > 0) return edge;
  return String(BigInt(edge.split(".")[0]) - 2n);
}

/** @param {any} bucket @param {number} place @param {Say} say */
function bucketLabel({ edges, open_below: openBelow }, place, say) {
  const at = place - Number(openBelow);
  if (at < 0) return say("under", { high: edges[0] });
  if (at === edges.length - 1) return say("orMore", { low: edges[at] });
  return say("from", { low: edges[at], high: edges[at + 1] });
}

/** The answers of a domain that can be listed: [label, answer]. @param {any} domain @param {Say} say @returns {[string, any][]} */
function listed(domain, say) {
  if (domain.kind === "booleans")
    return [
      [say("yes"), true],
      [say("no"), false],
    ];
  if (domain.kind === "buckets") {
    return Array.from({ length: domain.size }, (_, i) => [bucketLabel(domain, i, say), inside(domain, i)]);
  }
  return domain.allLabels().map((/** @type {string} */ label) => [label, label]);
}

/** @param {string} name @param {[string, any][]} options @param {string} shape @returns {Field} */
function radios(name, options, shape) {
  const inputs = options.map((_, i) => h("input", { type: "radio", name, value: i, required: true }));
  const labels = options.map(([label], i) => h("label", {}, inputs[i], h("span", {}, label)));
  const read = () => options[inputs.findIndex((input) => input.checked)]?.[1];
  return { element: h("div", { class: `choices ${shape}` }, ...labels), read, focus: inputs[0] };
}

/** @param {string} name @param {[string, any][]} options @param {Say} say @param {string} label @returns {Field} */
function menu(name, options, say, label) {
  const items = options.map(([text], i) => h("option", { value: i }, text));
  const select = h(
    "select",
    { name, required: true, "aria-label": label },
    h("option", { value: "" }, say("choose")),
    ...items,
  );
  return {
    element: select,
    read: () => (select.value === "" ? undefined : options[Number(select.value)][1]),
    focus: select,
  };
}

/** @param {string} name @param {Record<string, any>} attributes @param {string} hint @param {string} label @returns {Field} */
function line(name, attributes, hint, label) {
  const id = `hint-${name}`;
  const input = h("input", {
    name,
    required: true,
    "aria-describedby": id,
    "aria-label": label,
    autocomplete: "off",
    ...attributes,
  });
  const element = h("div", {}, input, h("p", { class: "hint", id }, hint));
  return { element, read: () => (input.value.trim() === "" ? undefined : input.value.trim()), focus: input };
}

/** @param {string} name @param {any} domain @param {Say} say @param {string} label @returns {Field} */
function bits(name, { length }, say, label) {
  if (length > MOST_BOXES) {
    return line(
      name,
      { pattern: `[01]{${length}}`, inputmode: "numeric", maxlength: length },
      say("bitsText", { length }),
      label,
    );
  }
  const boxes = Array.from({ length }, (_, i) => h("input", { type: "checkbox", name, value: i }));
  const labels = boxes.map((box, i) => h("label", {}, box, h("span", {}, say("bit", { i: i + 1 }))));
  const element = h("div", {}, h("div", { class: "choices two" }, ...labels), h("p", { class: "hint" }, say("bits")));
  return { element, read: () => boxes.map((box) => Number(box.checked)), focus: boxes[0] };
}

/** @param {string} name @param {any} domain @param {Say} say @param {string} label @returns {Field} */
function product(name, { attributes }, say, label) {
  const parts = attributes.map((/** @type {any} */ one) =>
    field(`${name}-${one.name}`, one, say, `${label}, ${one.name}`),
  );
  const sets = parts.map((/** @type {Field} */ part, /** @type {number} */ i) =>
    h("fieldset", {}, h("legend", {}, attributes[i].name), part.element),
  );
  const read = () => {
    const answers = parts.map((/** @type {Field} */ part) => part.read());
    return answers.includes(undefined) ? undefined : answers;
  };
  return { element: h("div", { class: "nested" }, ...sets), read, focus: parts[0].focus };
}

/** The rule for a number in buckets, in words. @param {any} domain @param {Say} say */
function bucketRule({ edges, open_below: openBelow, open_above: openAbove }, say) {
  const low = openBelow ? "" : say("atLeast", { low: edges[0] });
  const high = openAbove ? "" : say("below", { high: edges.at(-1) });
  return say("number", { rule: [low, high].filter(Boolean).join(` ${say("and")} `) });
}

/**
 * The field of a domain.
 * @param {string} name
 * @param {any} domain
 * @param {Say} say
 * @param {string} label what a screen reader calls it
 * @returns {Field}
 */
export function field(name, domain, say, label) {
  const { kind } = domain;
  if (kind === "optional") return optionalField(name, domain, say, label, field);
  if (kind === "product") return product(name, domain, say, label);
  if (kind === "bits") return bits(name, domain, say, label);
  if (kind === "items") return setField(name, domain, say, label);
  if (kind === "text") return textField(name, domain, say, label);
  if (kind === "strings") {
    const bytes = domain.max_bytes;
    return line(name, { type: "text", maxlength: bytes }, say("text", { bytes }), label);
  }
  if (kind === "integers") {
    const { low, high, step } = domain;
    const hint = say(step === 1 ? "range" : "rangeStep", { low: String(low), high: String(high), step: String(step) });
    const made = line(
      name,
      { type: "number", inputmode: low < 0 ? null : "numeric", min: low, max: high, step },
      hint,
      label,
    );
    return { ...made, why: () => hint };
  }
  if (kind === "buckets" && domain.size > MOST_BUCKETS) {
    return line(name, { type: "text", inputmode: "decimal" }, bucketRule(domain, say), label);
  }
  const options = listed(domain, say);
  if (options.length > (kind === "buckets" ? MOST_BUCKETS : MOST_RADIOS)) return menu(name, options, say, label);
  const short = options.every(([text]) => text.length <= 16) && options.length <= 6;
  return radios(name, options, kind === "ordered" && short ? "row-of" : kind === "booleans" ? "two" : "list");
}
