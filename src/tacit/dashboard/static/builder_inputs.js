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
  );
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
