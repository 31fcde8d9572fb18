/** Shares of values that the analyst names: unbiased, without any search. */

import { h } from "../page/dom.js";

/**
 * A form below a ranking.
 * @param {string} id
 * @param {(query: string, given: Record<string, any>) => Promise<any>} ask
 * @param {(values: any[], level: number) => HTMLElement} table
 */
export function lookup(id, ask, table) {
  const field = h("textarea", { id: `named-${id}`, spellcheck: "false", autocomplete: "off", rows: 3 });
  const found = h("div", { role: "status" });
  const look = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const answer = await ask("candidates", { values: field.value }).catch((error) => ({ error }));
    const words = answer.error?.message ?? "Too few reports on this question so far.";
    found.replaceChildren(answer.values ? table(answer.values, answer.level) : h("p", { class: "soft" }, words));
  };
  return h(
    "details",
    {},
    h("summary", {}, "Look up values by name"),
    h(
      "form",
      { class: "stack", onsubmit: look },
      h("div", { class: "field" }, h("label", { for: field.id }, "Values, one per line"), field),
      h("div", {}, h("button", { type: "submit" }, "Look up")),
      found,
    ),
  );
}
