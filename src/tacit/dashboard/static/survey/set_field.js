/** The field of a question about a set: boxes to tick, with a search where the list is long. */

import { h } from "../page/dom.js";

const MOST_BOXES = 12;
const MOST_SHOWN = 60;

/** Text as it is searched: without accents and capitals. @param {string} text */
const plain = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .toLowerCase();

/** Boxes for the items of a list, of which some are shown at a time. */
class SetField {
  /** The places of the items that are ticked. @type {Set<number>} */
  chosen = new Set();
  list = h("div", { class: "choices two" });
  told = h("p", { class: "hint", role: "status" });

  /** @param {string} name @param {any} domain @param {(key: string, values?: any) => string} say @param {string} label */
  constructor(name, { labels, most }, say, label) {
    this.name = name;
    this.labels = labels;
    this.most = most ?? labels.length;
    this.say = say;
    this.search = h("input", { type: "search", autocomplete: "off", spellcheck: "false", "aria-label": say("find") });
    this.search.placeholder = say("find");
    this.search.addEventListener("input", () => this.draw());
    this.isLong = labels.length > MOST_BOXES;
    const box = h("div", { class: this.isLong ? "long-list" : null, role: "group", "aria-label": label }, this.list);
    const rule = say(most ? "setMost" : "set", { most });
    const parts = [h("p", { class: "hint first" }, rule), this.isLong && this.search, box, this.told];
    this.element = h("div", { class: "set" }, ...parts);
    this.draw();
  }

  /** The places to show: what is ticked already, then what the search finds. @returns {number[]} */
  found() {
    const wanted = plain(this.search.value.trim());
    const all = this.labels.map((/** @type {string} */ _, /** @type {number} */ i) => i);
    if (!wanted) return all;
    return all.filter((/** @type {number} */ i) => this.chosen.has(i) || plain(this.labels[i]).includes(wanted));
  }

  draw() {
    const found = this.found();
    const first = found.filter((i) => this.chosen.has(i));
    const shown = this.isLong ? [...new Set([...first, ...found])].slice(0, first.length + MOST_SHOWN) : found;
    this.list.replaceChildren(...shown.map((i) => this.box(i)));
    this.hidden = found.length - shown.length;
    this.tell();
  }

  /** @param {number} i */
  box(i) {
    const tick = () => {
      if (box.checked) this.chosen.add(i);
      else this.chosen.delete(i);
      this.tell();
    };
    const box = h("input", { type: "checkbox", name: this.name, value: i, onchange: tick });
    box.checked = this.chosen.has(i);
    return h("label", {}, box, h("span", {}, this.labels[i]));
  }

  /** Say how many are ticked, and how many are out of sight. */
  tell() {
    const { say, chosen, most } = this;
    const over = chosen.size > most;
    const said = [say(over ? "setOver" : "setChosen", { count: chosen.size, most })];
    if (this.hidden) said.push(say("setHidden", { count: this.hidden }));
    this.told.textContent = said.join(" ");
    this.told.classList.toggle("error", over);
  }

  /** The labels that are ticked; none is an answer too. @returns {string[]} */
  read() {
    return [...this.chosen].sort((a, b) => a - b).map((i) => this.labels[i]);
  }

  /** @param {number[]} kept */
  restore(kept) {
    this.chosen = new Set(kept);
    this.draw();
  }
}

/**
 * The field of a domain of sets.
 * @param {string} name
 * @param {any} domain
 * @param {(key: string, values?: Record<string, any>) => string} say
 * @param {string} label
 * @returns {import("./fields.js").Field}
 */
export function setField(name, domain, say, label) {
  const made = new SetField(name, domain, say, label);
  return {
    element: made.element,
    read: () => made.read(),
    focus: made.isLong ? made.search : made.list.querySelector("input"),
    why: () => say("setOver", { count: made.chosen.size, most: made.most }),
    keep: () => [...made.chosen],
    restore: (kept) => made.restore(kept),
  };
}
