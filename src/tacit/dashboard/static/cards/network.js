/** Itemsets as a picture: items on a circle, lines between those that were found together. */

import { h, svg } from "../page/dom.js";
import { percent, short } from "../page/format.js";

/** Sizes of the picture: [least room for it, width, height, half the width and half the height of the circle]. */
const SIZES = [
  [520, 560, 380, 150, 130],
  [0, 320, 300, 82, 100],
];
const MOST_LETTERS = 16;
const MOST_NODES = 24;

/** Every two items of a list. @param {string[]} items @returns {[string, string][]} */
const pairs = (items) => items.flatMap((one, i) => items.slice(i + 1).map((other) => /** @type {any} */ ([one, other])));

/**
 * Items and the strongest itemset that holds each pair.
 * @param {any[]} rows {value: string[], estimate}
 * @returns {{nodes: Map<string, number>, lines: Map<string, {ends: [string, string], share: number}>}}
 */
export function graphOf(rows) {
  const [nodes, lines] = [new Map(), new Map()];
  for (const { value, estimate } of rows) {
    const fresh = value.filter((/** @type {string} */ item) => !nodes.has(item));
    if (nodes.size + fresh.length > MOST_NODES) continue;
    for (const item of value) nodes.set(item, Math.max(nodes.get(item) ?? 0, estimate));
    for (const ends of pairs(value)) {
      const key = JSON.stringify([...ends].sort());
      if (estimate > (lines.get(key)?.share ?? 0)) lines.set(key, { ends, share: estimate });
    }
  }
  return { nodes, lines };
}

/** The picture in words. @param {ReturnType<typeof graphOf>} graph */
function words({ nodes, lines }) {
  const strongest = [...lines.values()].sort((a, b) => b.share - a.share).slice(0, 3);
  const said = strongest.map(({ ends, share }) => `${ends.join(" and ")} at ${percent(share)}`).join(", ");
  const sizes = `${nodes.size} items and ${lines.size} pairs`;
  return `Network of ${sizes} that occur together. Strongest: ${said}. The table has all numbers.`;
}

/** Where things are on the circle. @param {string[]} names @param {number[]} size */
function places(names, [, wide, tall, a, b]) {
  return new Map(
    names.map((name, i) => {
      const turn = (2 * Math.PI * i) / names.length - Math.PI / 2;
      const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
      return [name, { x: wide / 2 + a * cos, y: tall / 2 + b * sin, cos, sin }];
    }),
  );
}

/** @param {string} name @param {any} at @param {number} radius */
function nameOf(name, { x, y, cos, sin }, radius) {
  const anchor = Math.abs(cos) < 0.2 ? "middle" : cos > 0 ? "start" : "end";
  const away = radius + 7;
  return svg("text", { x: x + away * cos, y: y + (away + 4) * sin + 4, "text-anchor": anchor }, short(name, MOST_LETTERS));
}

/**
 * The network of itemsets, or null if no two items were found together.
 * @param {any[]} rows {value: string[], estimate}, best first
 * @param {number} room how wide it may be
 * @returns {HTMLElement | null}
 */
export function network(rows, room) {
  const graph = graphOf(rows);
  const { nodes, lines } = graph;
  if (!lines.size) return null;
  const most = Math.max(...nodes.values(), 1e-9);
  const size = SIZES.find(([least]) => room >= least) ?? SIZES[0];
  const at = places([...nodes.keys()], size);
  const strokes = [...lines.values()].map(({ ends, share }) => {
    const [a, b] = ends.map((end) => at.get(end));
    const ends_ = { x1: a.x, y1: a.y, x2: b.x, y2: b.y };
    const label = svg("title", {}, `${ends.join(" + ")}: ${percent(share)}`);
    return svg("line", { class: "tie", ...ends_, "stroke-width": 1 + (7 * Math.max(0, share)) / most }, label);
  });
  const circles = [...nodes].flatMap(([name, share]) => {
    const [place, radius] = [at.get(name), 5 + 9 * Math.sqrt(Math.max(0, share) / most)];
    const label = svg("title", {}, `${name}: ${percent(share)}`);
    return [svg("circle", { class: "node", cx: place.x, cy: place.y, r: radius }, label), nameOf(name, place, radius)];
  });
  const view = { viewBox: `0 0 ${size[1]} ${size[2]}`, role: "img", "aria-label": words(graph), class: "network" };
  const legend = "Circles are items, lines join items that were found together; larger and thicker is more frequent.";
  return h("div", {}, svg("svg", view, ...strokes, ...circles), h("p", { class: "soft" }, legend));
}
