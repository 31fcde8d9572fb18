/** Inputs of the builder's form; each keeps a property of what is being written. */

import { h } from "./dom.js";

/**
 * @typedef {object} Form
 * @property {any} model
 * @property {() => void} changed something was typed
 * @property {() => void} redraw fields were added or taken away
 */

/** @param {string} label @param {any} input @param {string} [hint] */
export function field(label, input, hint) {
  if (hint) input.setAttribute("aria-describedby", `${input.id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: input.id }, label),
    input,
    hint && h("span", { class: "hint", id: `${input.id}-hint` }, hint),
    h("span", { class: "fault", id: `${input.id}-fault`, role: "alert" }),
  );
}

/**
 * Say at every field what is wrong with it, and nothing at the others.
 * @param {any} root
 * @param {import("../builder/checks.js").Fault[]} faults
 */
export function complain(root, faults) {
  for (const place of root.querySelectorAll(".fault")) {
    const input = document.getElementById(place.id.slice(0, -"-fault".length));
    const fault = faults.find(({ field: id }) => `${id}-fault` === place.id);
    const words = fault?.words ?? "";
    if (place.textContent !== words) place.textContent = words;
    input?.setAttribute("aria-invalid", String(Boolean(fault)));
    describe(input, place.id, Boolean(fault));
  }
}

/** @param {any} input @param {string} id @param {boolean} told */
function describe(input, id, told) {
  if (!input) return;
  const others = (input.getAttribute("aria-describedby") ?? "").split(" ").filter((/** @type {string} */ one) => one && one !== id);
  const all = told ? [...others, id] : others;
  if (all.length) input.setAttribute("aria-describedby", all.join(" "));
  else input.removeAttribute("aria-describedby");
}

/** An input that keeps a property. @param {Form} form @param {any} object @param {string} name @param {string} id @param {any} [attributes] */
export function text(form, object, name, id, attributes = {}) {
  const { tag = "input", read = (/** @type {string} */ value) => value, ...rest } = attributes;
  const keep = () => {
    object[name] = read(input.value);
    form.changed();
  };
  const input = h(tag, { id, oninput: keep, autocomplete: "off", ...rest });
  input.value = object[name] ?? "";
  return input;
}

/** @param {Form} form @param {any} object @param {string} name @param {string} id @param {string[][]} options */
export function select(form, object, name, id, options) {
  const keep = () => {
    object[name] = input.value;
    form.redraw();
  };
  const input = h("select", { id, onchange: keep }, ...options.map(([value, words]) => h("option", { value }, words)));
  input.value = object[name];
  return input;
}

/** @param {Form} form @param {any} object @param {string} name @param {string} words */
export function check(form, object, name, words) {
  const keep = () => {
    object[name] = box.checked;
    form.changed();
  };
  const box = h("input", { type: "checkbox", onchange: keep });
  box.checked = object[name];
  return h("label", { class: "check" }, box, words);
}
