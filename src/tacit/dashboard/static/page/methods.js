/** Post-processing: which methods the collector knows, what each promises, and a menu to choose one. */

import { byId, h } from "./dom.js";

/** The collector's table of methods. @type {any[]} */
const METHODS = JSON.parse(byId("collection")?.dataset.methods ?? "[]");

/** @param {string} name @returns {any} */
const find = (name) => METHODS.find((method) => method.name === name);

/** What is said of shares as they were estimated. */
export const RAW = "Unbiased: right on average, so a small share may come out below zero. Use these for sums and tests.";

const SUMS = /** @type {Record<string, string>} */ ({
  yes: "all add up to 100 %",
  almost: "all add up to 100 % or less",
  no: "",
});

/** What is said of shares that need not add up, since people tick several things. */
const CLIPPED = "Every share is kept within 0 and 100 %. They need not add up: one person may tick several.";

/** What a method promises, in a line. @param {string} name */
export function promise(name) {
  if (name === "clip") return CLIPPED;
  const method = find(name);
  if (!method) return "Adjusted to be consistent. Easier to read, but biased.";
  const rules = [method.non_negative && "no share is negative", SUMS[method.sums_to_one]].filter(Boolean);
  const made = rules.length ? `Adjusted so that ${rules.join(" and ")}.` : "Shares may be negative and need not add up.";
  const bias = method.biased ? "Easier to read, but biased." : "Unbiased.";
  return `${made} ${bias}`;
}

/** What shown shares are. @param {string} mode raw or consistent @param {string} method */
export const noteOf = (mode, method) => (mode === "raw" ? RAW : promise(method));

/**
 * A menu of the methods, in a row with its label; `show(name, cells)` says which one was used on how many answers.
 * Methods for ordered answers are not offered for others, nor those that need more answers than there are.
 * @param {string} id
 * @param {(name: string) => void} choose
 * @param {boolean} ordered
 */
export function methodMenu(id, choose, ordered) {
  const options = METHODS.filter((method) => ordered || !method.ordered).map(({ name, title, least_cells: least }) =>
    h("option", { value: name, "data-least": least }, title),
  );
  const menu = h("select", { id, onchange: () => choose(menu.value) }, ...options);
  // Most people never need another method than the one that was picked for their data.
  const suits = h("p", { class: "soft", id: `${id}-suits` });
  menu.setAttribute("aria-describedby", suits.id);
  const row = h(
    "details",
    { class: "advanced", hidden: true },
    h("summary", {}, "Advanced"),
    h("div", { class: "least" }, h("label", { for: id }, "Adjusted by"), menu),
    suits,
  );
  const show = (/** @type {string} */ name, /** @type {number} */ cells) => {
    row.hidden = !find(name);
    for (const option of options) option.hidden = option.disabled = Number(option.dataset.least) > cells;
    menu.value = name;
    suits.textContent = find(name) ? `${find(name).title} is good for ${find(name).best_for}.` : "";
  };
  return Object.assign(row, { show });
}
