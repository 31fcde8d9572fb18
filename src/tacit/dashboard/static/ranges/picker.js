/** A range of ordered answers, chosen with two handles on one rail or typed; ends that would cross move together. */

import { h } from "../page/dom.js";

const MOST_OPTIONS = 512;
/** Which end of a range. @typedef {"low" | "high"} End */
const ENDS = /** @type {[End, string, string][]} */ ([
  ["low", "From", "Lowest answer"],
  ["high", "To", "Highest answer"],
]);

/** Words for screen readers alone. @param {string} words */
const hiddenly = (words) => words && h("span", { class: "hidden-text" }, words);

/** Two handles, two fields, and the range they agree on. */
export class Picker {
  /**
   * @param {import("./ordered.js").Leaves} leaves
   * @param {string} id
   * @param {() => void} changed
   * @param {string} [of] what the answers are about, where a page has several pickers of one question
   */
  constructor(leaves, id, changed, of = "") {
    this.leaves = leaves;
    this.of = of && ` of ${of}`;
    this.changed = changed;
    this.low = Math.floor(leaves.size / 4);
    this.high = Math.max(this.low, Math.ceil((3 * leaves.size) / 4) - 1);
    this.handles = ENDS.map(([end, , name]) => this.handle(end, name));
    this.isTyped = leaves.kind === "integers";
    const fields = this.isTyped || leaves.size <= MOST_OPTIONS ? ENDS : [];
    this.fields = fields.map(([end]) => this.field(end, id));
    this.rail = h("div", { class: "rail" }, h("div", { class: "rail-chosen" }), ...this.handles);
    const labelled = this.fields.map((field, i) =>
      h("div", { class: "field" }, h("label", { for: field.id }, ENDS[i][1], hiddenly(this.of)), field),
    );
    this.typed = h("div", { class: "ends" }, ...labelled);
    this.show();
  }

  /** @param {End} end @param {string} name */
  handle(end, name) {
    const input = h("input", { type: "range", min: 0, max: this.leaves.size - 1, step: 1, "aria-label": name + this.of });
    input.dataset.end = end;
    input.addEventListener("input", () => this.move(end, Number(input.value)));
    return input;
  }

  /** A field to type an end into, or to choose it from a list. @param {End} end @param {string} id */
  field(end, id) {
    const { leaves, isTyped } = this;
    const { low, high, step } = leaves.spec;
    const length = isTyped ? 0 : leaves.size;
    const options = Array.from({ length }, (_, i) => h("option", { value: i }, leaves.words(i, i)));
    const shape = isTyped ? { type: "number", min: low, max: high, step } : {};
    const field = h(isTyped ? "input" : "select", { id: `${end}-${id}`, ...shape }, ...options);
    field.addEventListener("change", () => {
      const given = isTyped ? (Number(field.value) - low) / step : Number(field.value);
      this.move(end, field.value === "" ? this[end] : Math.round(Math.min(Math.max(given, 0), leaves.size - 1)));
    });
    return field;
  }

  /** Move an end to a leaf. @param {End} end @param {number} leaf */
  move(end, leaf) {
    if (end === "low") this.choose(leaf, Math.max(leaf, this.high));
    else this.choose(Math.min(leaf, this.low), leaf);
  }

  /** Choose leaves, both ends included. @param {number} low @param {number} high */
  choose(low, high) {
    const same = low === this.low && high === this.high;
    [this.low, this.high] = [low, high];
    this.show();
    if (!same) this.changed();
  }

  show() {
    const { leaves } = this;
    const share = (/** @type {number} */ leaf) => String(leaf / Math.max(1, leaves.size - 1));
    ENDS.forEach(([end], i) => {
      this.handles[i].value = String(this[end]);
      this.handles[i].setAttribute("aria-valuetext", leaves.words(this[end], this[end]));
      if (this.fields[i]) this.fields[i].value = String(this.isTyped ? leaves.label(this[end]) : this[end]);
    });
    this.rail.style.setProperty("--low-share", share(this.low));
    this.rail.style.setProperty("--high-share", share(this.high));
    // Where both handles are at the upper end, only the lower one can still be moved.
    this.rail.classList.toggle("crowded", this.low > leaves.size / 2);
  }
}
