/** Shares of two ordered attributes as a heat map, on which a rectangle can be dragged. */

import { h, svg } from "../page/dom.js";
import { percent, short } from "../page/format.js";

const LEFT = 108;
const BELOW = 44;
const ROW = 44;
const TALLEST = 420;
const MOST_LETTERS = 12;

/** A heat map: attribute 0 to the right, attribute 1 upwards. */
export class HeatMap {
  /** @type {[number, number]} */
  start = [-1, -1];

  /**
   * @param {string} title
   * @param {import("./ordered.js").Leaves[]} leaves of the two attributes
   * @param {string[]} names of the attributes
   * @param {(low: number[], high: number[]) => void} dragged over leaves
   */
  constructor(title, leaves, names, dragged) {
    this.leaves = leaves;
    this.names = names;
    this.dragged = dragged;
    const label = `Heat map: ${title}, ${names.join(" by ")}. The table below has the same numbers.`;
    this.picture = svg("svg", { role: "img", "aria-label": label, class: "heat" });
    this.element = h("div", { class: "plot" }, this.picture);
    /** @type {any} */
    this.frame = undefined;
    /** @type {any} */
    this.grid = undefined;
    this.picture.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.grab(event));
    this.picture.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.picture.addEventListener(end, () => (this.start = [-1, -1]));
    new ResizeObserver(() => this.grid && this.resized()).observe(this.element);
  }

  resized() {
    if (Math.abs(this.element.clientWidth - this.wide) > 1) this.draw(this.grid);
  }

  /** @param {any} grid {shape, widths, cells}: nodes and leaves a node of both attributes, shares row by row */
  draw(grid) {
    this.grid = grid;
    const [columns, rows] = grid.shape;
    const wide = (this.wide = this.element.clientWidth || 640);
    this.step = [(wide - LEFT - 8) / columns, Math.min(ROW, TALLEST / rows)];
    const tall = this.step[1] * rows;
    this.tall = tall;
    this.picture.setAttribute("viewBox", `0 0 ${wide} ${tall + BELOW}`);
    const most = Math.max(...grid.cells.map((/** @type {any} */ one) => one.estimate), 1e-9);
    const cells = grid.cells.map((/** @type {any} */ one, /** @type {number} */ i) => this.cell(one, i, most));
    this.frame = svg("rect", { class: "chosen" });
    this.picture.replaceChildren(...cells, ...this.axes(), this.frame);
    this.choose(this.low ?? [0, 0], this.high ?? this.leaves.map(({ size }) => size - 1));
  }

  /** @param {any} one @param {number} i @param {number} most */
  cell(one, i, most) {
    const [, rows] = this.grid.shape;
    const [column, row] = [Math.floor(i / rows), i % rows];
    const [width, height] = this.step;
    const corner = { x: LEFT + column * width, y: this.tall - (row + 1) * height };
    const at = { ...corner, width: width + 0.3, height: height + 0.3 };
    const shade = Math.max(0, one.estimate) / most;
    const words = `${this.words([column, row])}: ${percent(one.estimate, one.standard_error)}`;
    const opacity = (0.04 + 0.96 * shade).toFixed(3);
    return svg("rect", { class: "cell", ...at, "fill-opacity": opacity }, svg("title", {}, words));
  }

  /** Leaves of a node, both ends included. @param {number} a @param {number} node */
  ends(a, node) {
    const width = this.grid.widths[a];
    return [node * width, Math.min((node + 1) * width, this.leaves[a].size) - 1];
  }

  /** @param {number[]} node */
  words(node) {
    return node.map((at, a) => `${this.names[a]} ${this.leaves[a].words(...this.ends(a, at))}`).join(", ");
  }

  /** Marks along both sides, as many as have room. */
  axes() {
    const [columns, rows] = this.grid.shape;
    const every = [Math.ceil(80 / this.step[0]), Math.ceil(18 / this.step[1])];
    const mark = (/** @type {number} */ a, /** @type {number} */ node, /** @type {any} */ at) =>
      svg("text", at, short(this.leaves[a].mark(this.ends(a, node)[0]), MOST_LETTERS));
    const marks = [];
    for (let i = 0; i < columns; i += every[0]) {
      marks.push(mark(0, i, { x: LEFT + (i + 0.5) * this.step[0], y: this.tall + 17, "text-anchor": "middle" }));
    }
    for (let i = 0; i < rows; i += every[1]) {
      marks.push(mark(1, i, { x: LEFT - 8, y: this.tall - (i + 0.5) * this.step[1] + 4, "text-anchor": "end" }));
    }
    const name = svg("text", { class: "axis", x: LEFT, y: this.tall + 38 }, `${this.names[0]} → · ${this.names[1]} ↑`);
    return [...marks, name];
  }

  /** Frame leaves, both ends included. @param {number[]} low @param {number[]} high */
  choose(low, high) {
    [this.low, this.high] = [low, high];
    if (!this.frame) return;
    const { widths } = this.grid;
    const unit = this.step.map((step, a) => step / widths[a]);
    const place = (/** @type {number} */ a, /** @type {number} */ leaf) =>
      Math.min(leaf * unit[a], this.step[a] * this.grid.shape[a]);
    const box = {
      x: LEFT + place(0, low[0]),
      y: this.tall - place(1, high[1] + 1),
      width: place(0, high[0] + 1) - place(0, low[0]),
      height: place(1, high[1] + 1) - place(1, low[1]),
    };
    for (const [name, value] of Object.entries(box)) this.frame.setAttribute(name, String(value));
  }

  /** The node under a pointer. @param {PointerEvent} event @returns {[number, number]} */
  under({ clientX, clientY }) {
    const box = this.picture.getBoundingClientRect();
    const scale = this.wide / box.width;
    const [x, y] = [(clientX - box.left) * scale - LEFT, this.tall - (clientY - box.top) * scale];
    const at = [x / this.step[0], y / this.step[1]];
    const inside = at.map((one, a) => Math.min(Math.max(Math.floor(one), 0), this.grid.shape[a] - 1));
    return /** @type {[number, number]} */ (inside);
  }

  /** @param {PointerEvent} event */
  grab(event) {
    if (!this.grid || event.button) return;
    this.picture.setPointerCapture(event.pointerId);
    this.start = this.under(event);
    this.drag(event);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (this.start[0] < 0) return;
    const now = this.under(event);
    const low = now.map((one, a) => this.ends(a, Math.min(one, this.start[a]))[0]);
    const high = now.map((one, a) => this.ends(a, Math.max(one, this.start[a]))[1]);
    this.dragged(low, high);
  }
}
