/** Sites that may embed a published survey or send reports to it: those of its document, and those added beside it. */

import { call } from "../page/api.js";
import { h } from "../page/dom.js";
import { items } from "../builder/draft.js";

const WRONG = "Write every site as https:// and its host in small letters, such as https://example.org, with nothing behind it.";

/**
 * The list, and for an administrator a field to change it; the document stays as it is.
 * @param {string} id of the collection
 * @param {string[]} document_ the origins that the document names
 * @param {boolean} admin
 */
export function sites(id, document_, admin) {
  const known = document_.length
    ? `The document allows ${document_.join(", ")}.`
    : "The document allows no other site to show this survey or to send reports.";
  if (!admin) return h("p", { class: "soft" }, known);
  const field = h("textarea", { id: "sites", disabled: true, rows: 2, spellcheck: "false", autocomplete: "off", "aria-describedby": "sites-hint sites-said" });
  const said = h("span", { id: "sites-said", class: "fault", role: "status" });
  const show = (/** @type {{added: string[]}} */ { added }) => {
    field.value = added.join("\n");
    // Not before the list is there, which would be written over what was typed.
    field.disabled = false;
  };
  const say = (/** @type {string} */ words, /** @type {boolean} */ wrong) => {
    said.textContent = words;
    said.classList.toggle("well", !wrong);
    field.setAttribute("aria-invalid", String(wrong));
  };
  const keep = async () => {
    try {
      show(await call("PUT", `collections/${id}/origins`, { origins: items(field.value) }));
      say("Saved. It holds within a few seconds.", false);
    } catch (error) {
      const { message } = /** @type {Error} */ (error);
      say(/is no web origin/.test(message) ? WRONG : message.replace(/^origins: /, ""), true);
    }
  };
  call("GET", `collections/${id}/origins`).then(show, (error) => say(error.message, true));
  const hint = `${known} Sites added here stand beside it: the document and its address stay the same, and every change is in the audit log.`;
  return h(
    "div",
    { class: "field" },
    h("label", { for: "sites" }, "Further sites, one origin per line"),
    field,
    h("span", { class: "hint", id: "sites-hint" }, hint),
    said,
    h("div", {}, h("button", { type: "button", onclick: keep }, "Save sites")),
  );
}
