/** The field of a question about free text: its rule in plain words, and what is wrong while it is typed. Nothing of
 * it leaves the page: spelling checks and suggestions of the browser, which may ask a server, are switched off. */

import { h } from "../page/dom.js";

const MOST_LISTED = 48;

/** Whether a character belongs to an alphabet; "bytes" takes any. @param {string} alphabet @param {string} one */
function belongs(alphabet, one) {
  if (alphabet === "bytes") return true;
  if (alphabet === "lower") return one >= "a" && one <= "z";
  return alphabet === "printable" ? one >= " " && one <= "~" : [...alphabet].includes(one);
}

/** Text as the domain spells it: capitals that it does not have become small letters. @param {string} alphabet @param {string} text */
export function spelt(alphabet, text) {
  const small = (/** @type {string} */ one) => (!belongs(alphabet, one) && belongs(alphabet, one.toLowerCase()) ? one.toLowerCase() : one);
  return [...text.trim().normalize("NFC")].map(small).join("");
}

/** @param {any} domain @param {(key: string, values?: any) => string} say */
function rule({ alphabet, length }, say) {
  const named = /** @type {Record<string, string>} */ ({
    lower: "textLower",
    printable: "textPrintable",
    bytes: "textBytes",
  })[alphabet];
  if (named) return say(named, { length });
  const all = [...alphabet].map((one) => (one === " " ? "␣" : one));
  const characters = all.length > MOST_LISTED ? `${all.slice(0, MOST_LISTED).join(" ")} …` : all.join(" ");
  return say("textOf", { length, characters });
}

/**
 * What is wrong with a text, or how much room is left.
 * @param {any} domain
 * @param {string} given
 * @param {(key: string, values?: any) => string} say
 * @returns {{wrong: boolean, words: string}}
 */
function judge({ alphabet, length }, given, say) {
  const text = given.normalize("NFC");
  const bytes = alphabet === "bytes";
  const strange = [...new Set(text)].filter((one) => !belongs(alphabet, one));
  if (strange.length) return { wrong: true, words: say("textStrange", { characters: strange.slice(0, 8).join(" ") }) };
  const left = length - (bytes ? new TextEncoder().encode(text).length : [...text].length);
  return left < 0
    ? { wrong: true, words: say("textOver", { count: -left }) }
    : { wrong: false, words: say("textLeft", { count: left }) };
}

/**
 * The field of a domain of texts.
 * @param {string} name
 * @param {any} domain
 * @param {(key: string, values?: Record<string, any>) => string} say
 * @param {string} label
 * @returns {import("./fields.js").Field}
 */
export function textField(name, domain, say, label) {
  const ids = [`hint-${name}`, `live-${name}`];
  const quiet = { autocomplete: "off", autocapitalize: "none", autocorrect: "off", spellcheck: "false" };
  const named = { name, "aria-label": label, "aria-describedby": ids.join(" ") };
  const input = h("input", { type: "text", required: true, ...named, ...quiet });
  const live = h("p", { class: "hint", id: ids[1], role: "status" });
  const value = () => spelt(domain.alphabet, input.value);
  const none = h("input", { type: "checkbox", name: `none-${name}`, "data-declines": true });
  none.addEventListener("change", () => {
    if (none.checked) input.value = "";
    look();
  });
  const look = () => {
    const { wrong, words } = judge(domain, value(), say);
    live.textContent = value() ? words : "";
    live.classList.toggle("error", wrong && value() !== "");
    input.setAttribute("aria-invalid", String(wrong && value() !== ""));
  };
  input.addEventListener("input", () => {
    none.checked = false;
    look();
  });
  // Once it is written, the text stands there as it is reported.
  input.addEventListener("change", () => (input.value = value()));
  return {
    element: h(
      "div",
      { class: "optional" },
      h("div", {}, input, h("p", { class: "hint", id: ids[0] }, rule(domain, say)), live),
      h("label", { class: "declines" }, none, h("span", {}, say("noText"))),
    ),
    read: () => (none.checked ? "" : value() || undefined),
    focus: input,
    why: () => judge(domain, value(), say).words,
    keep: () => [input.value, none.checked],
    restore: (kept) => {
      [input.value, none.checked] = kept;
      look();
    },
  };
}
