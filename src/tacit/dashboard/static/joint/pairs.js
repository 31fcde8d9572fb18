/** All pairs of questions at a glance: a matrix of their mutual information, or a ranking where they are many. */

import { h, scrolled, spoken } from "../page/dom.js";
import { nats, probability } from "../page/format.js";
import { shade } from "./table.js";

const MOST_COLUMNS = 10;
const MOST_RANKED = 100;
/** From here on, in nats, a connection is drawn in full; weaker ones stay faint even where none is stronger. */
export const STRONG = 0.05;
const RANKED =
  "Strongest first: mutual information in nats, corrected for the noise, and the p-value of independence. Connected " +
  "pairs are bold.";
const SHADED =
  "Mutual information in nats, corrected for the noise, above the p-value of independence. Darker is stronger, bold " +
  "is connected.";

/** @param {string[]} attributes */
const keyOf = (attributes) => [...attributes].sort().join(",");

/** @param {any} pair */
function wordsOf({ attributes, p_value: p, mutual_information: gain, dependent }) {
  const names = attributes.map(spoken).join(" and ");
  if (gain === null || gain === undefined) return `${names}: not asked together`;
  return `${names}: mutual information ${nats(gain)} nats, p ${probability(p)}${dependent ? ", connected" : ""}`;
}

/** The overview; `press(attributes)` says which pair is shown elsewhere. */
export class Pairs {
  note = h("p", { class: "soft" });
  element = h("div", {}, h("h3", {}, "All pairs"));
  box = scrolled("All pairs of questions");
  /** @type {string[]} */
  chosen = [];
  drawn = "";

  /** @param {string[]} names @param {(pair: string[]) => void} choose */
  constructor(names, choose) {
    this.names = names;
    this.choose = choose;
    this.box.classList.add("pairs-box");
    this.element.append(this.note, this.box);
  }

  /** @param {any[]} pairs @param {string} [words] what was found among them */
  update(pairs, words = "") {
    const now = JSON.stringify(pairs);
    // Redrawing what has not changed would take the keyboard away from its reader.
    if (now === this.drawn) return;
    this.drawn = now;
    const focused = /** @type {any} */ (document.activeElement)?.dataset?.pair;
    const many = this.names.length > MOST_COLUMNS;
    this.note.textContent = `${words} ${many ? RANKED : SHADED}`.trim();
    this.most = Math.max(...pairs.map(({ mutual_information: gain }) => gain ?? 0), STRONG);
    this.box.replaceChildren(many ? this.ranking(pairs) : this.matrix(pairs));
    this.press(this.chosen);
    this.box.querySelector(`[data-pair="${focused}"]`)?.focus();
  }

  /** Show the problem instead. @param {string} words */
  fail(words) {
    this.drawn = "";
    this.note.textContent = words;
    this.box.replaceChildren();
  }

  /** @param {string[]} attributes */
  press(attributes) {
    this.chosen = attributes;
    const key = keyOf(attributes.slice(0, 2));
    for (const button of this.box.querySelectorAll("[data-pair]")) {
      button.setAttribute("aria-pressed", String(button.dataset.pair === key));
    }
  }

  /** @param {any} pair @param {...any} children */
  button(pair, ...children) {
    const { attributes, dependent } = pair;
    const words = wordsOf(pair);
    const named = { "data-pair": keyOf(attributes), "aria-label": words, title: words };
    const look = { type: "button", class: dependent ? "connected" : null };
    return h("button", { ...look, ...named, onclick: () => this.choose(attributes) }, ...children);
  }

  /** The lower half of a square. @param {any[]} pairs */
  matrix(pairs) {
    const found = new Map(pairs.map((pair) => [keyOf(pair.attributes), pair]));
    const names = this.names;
    const cell = (/** @type {string} */ row, /** @type {string} */ column) => {
      const pair = found.get(keyOf([row, column])) ?? { attributes: [column, row], mutual_information: null };
      const { mutual_information: gain, p_value: p } = pair;
      const known = typeof gain === "number";
      const figures = known ? [nats(gain), h("small", {}, `p ${probability(p)}`)] : ["–"];
      const button = this.button(pair, ...figures);
      if (known) shade(button, gain / this.most);
      return h("td", {}, button);
    };
    const body = names.slice(1).map((row, i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, spoken(row)),
        ...names.slice(0, -1).map((column, j) => (j <= i ? cell(row, column) : h("td", {}))),
      ),
    );
    const heads = names.slice(0, -1).map((name) => h("th", { scope: "col" }, h("span", {}, spoken(name))));
    return h(
      "table",
      { class: "pair-table" },
      h("caption", { class: "hidden-text" }, "Mutual information and p-value of every pair"),
      h("thead", {}, h("tr", {}, h("td", {}), ...heads)),
      h("tbody", {}, ...body),
    );
  }

  /** @param {any[]} pairs */
  ranking(pairs) {
    const gain = (/** @type {any} */ pair) => pair.mutual_information ?? -1;
    const best = [...pairs].sort((a, b) => gain(b) - gain(a)).slice(0, MOST_RANKED);
    const line = (/** @type {any} */ pair) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, this.button(pair, pair.attributes.map(spoken).join(" · "))),
        h("td", { class: "right" }, gain(pair) < 0 ? "–" : nats(gain(pair))),
        h("td", { class: "right" }, probability(pair.p_value).replace("= ", "")),
      );
    const heads = ["Pair", "Nats", "p"].map((name, i) => h("th", { scope: "col", class: i ? "right" : null }, name));
    return h(
      "table",
      { class: "pair-ranking" },
      h("caption", { class: "hidden-text" }, "Pairs by mutual information, strongest first"),
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...best.map(line)),
    );
  }
}
