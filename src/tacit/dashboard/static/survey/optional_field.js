/** The field of a question that need not be answered: the fields of its answers, and a box for whoever declines. */

import { h } from "../page/dom.js";

/**
 * Whoever fills in nothing declines as well: that is reported with the same noise, so that nobody can see it.
 * @param {string} name
 * @param {any} optional the domain
 * @param {(key: string, values?: Record<string, any>) => string} say
 * @param {string} label
 * @param {(name: string, domain: any, say: any, label: string) => import("./fields.js").Field} field
 * @returns {import("./fields.js").Field}
 */
export function optionalField(name, { domain, declined }, say, label, field) {
  const made = field(name, domain, say, label);
  // Nothing here has to be filled in, and a screen reader should not say so.
  for (const input of [made.element, ...made.element.querySelectorAll("input, select")]) input.removeAttribute("required");
  const box = h("input", { type: "checkbox", name: `declined-${name}`, "data-declines": true });
  const inputs = () => [...made.element.querySelectorAll("input, select"), ...(made.element.matches("select") ? [made.element] : [])];
  // What was chosen before goes when somebody declines, and declining goes when something is chosen.
  const clear = () => {
    if (!box.checked) return;
    for (const input of inputs()) {
      input.checked = false;
      if (!["checkbox", "radio"].includes(input.type)) input.value = "";
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
    box.checked = true;
  };
  box.addEventListener("change", clear);
  made.element.addEventListener("input", () => (box.checked = false));
  const read = () => {
    const answer = box.checked ? null : made.read();
    return answer === undefined ? null : answer;
  };
  return {
    ...made,
    read,
    element: h("div", { class: "optional" }, made.element, h("label", { class: "declines" }, box, h("span", {}, declined))),
    keep: made.keep && (() => ({ declines: box.checked, kept: made.keep?.() })),
    restore:
      made.restore &&
      ((/** @type {any} */ { declines, kept }) => {
        made.restore?.(kept);
        box.checked = declines;
      }),
  };
}
