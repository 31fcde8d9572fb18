/** The Chow-Liu tree as a picture: every question on a line of its own, below the one it depends on most. */

import { h, spoken, svg } from "../page/dom.js";
import { nats, short } from "../page/format.js";
import { STRONG } from "./pairs.js";

const ROW = 36;
const LEFT = 14;
const STEP = 34;
const LETTER = 7.6;
const FIGURE = 84;

/**
 * @typedef {{from: string, to: string, mutual_information: number}} Edge
 * @typedef {{name: string, depth: number, row: number, edge?: Edge}} Place
 */

/** Nodes from the top down, children below their parents. @param {string[]} nodes @param {Edge[]} edges */
function placesOf(nodes, edges) {
  /** @type {Map<string, Edge[]>} */
  const below = new Map(nodes.map((name) => [name, []]));
  const held = new Set();
  for (const edge of edges) {
    below.get(edge.from)?.push(edge);
    held.add(edge.to);
  }
  /** @type {Map<string, Place>} */
  const places = new Map();
  const walk = (/** @type {string} */ name, /** @type {number} */ depth, /** @type {Edge | undefined} */ edge) => {
    if (places.has(name)) return;
    places.set(name, { name, depth, row: places.size, edge });
    for (const next of below.get(name) ?? []) walk(next.to, depth + 1, next);
  };
  for (const name of nodes.filter((one) => !held.has(one))) walk(name, 0, undefined);
  return places;
}

/** Text that fits into some pixels. @param {string} text @param {number} room */
const fitted = (text, room) => short(text, Math.max(4, Math.floor(room / LETTER)));

/** The tree in words. @param {string[]} nodes @param {Edge[]} edges */
function said(nodes, edges) {
  const parts = edges.map(
    ({ from, to, mutual_information: gain }) => `${spoken(to)} under ${spoken(from)}, ${nats(gain)} nats`,
  );
  return `Tree of ${nodes.length} questions: ${parts.join("; ")}.`;
}

/**
 * The tree.
 * @param {{nodes: string[], edges: Edge[], words?: string}} tree
 * @param {number} room how wide it may be
 */
export function treePicture({ nodes, edges, words }, room) {
  const places = placesOf(nodes, edges);
  const wide = Math.max(260, room);
  const deepest = Math.max(1, ...[...places.values()].map(({ depth }) => depth));
  const step = Math.min(STEP, (wide - 180) / deepest);
  const at = (/** @type {Place} */ { depth, row }) => ({ x: LEFT + depth * step, y: ROW * (row + 0.5) });
  const most = Math.max(...edges.map(({ mutual_information: gain }) => gain), STRONG);
  const lines = [...places.values()].filter(({ edge }) => edge).map((place) => {
    const { from, to, mutual_information: gain } = /** @type {Edge} */ (place.edge);
    const [{ x, y }, end] = [at(/** @type {Place} */ (places.get(from))), at(place)];
    const label = svg("title", {}, `${spoken(from)} – ${spoken(to)}: ${nats(gain)} nats`);
    const way = `M ${x} ${y} C ${x} ${end.y}, ${x} ${end.y}, ${end.x} ${end.y}`;
    // A connection that noise alone could show is drawn faintly.
    const look = { class: gain > 0 ? "tie" : "tie faint", "stroke-width": 1.5 + (6 * Math.max(0, gain)) / most };
    return svg("path", { ...look, d: way }, label);
  });
  const marks = [...places.values()].flatMap((place) => {
    const { x, y } = at(place);
    const name = svg("text", { x: x + 14, y: y + 5 }, fitted(spoken(place.name), wide - x - 14 - FIGURE));
    const gain = place.edge ? [`${nats(place.edge.mutual_information)} nats`] : [];
    const figure = svg("text", { class: "axis", x: wide - 4, y: y + 5, "text-anchor": "end" }, ...gain);
    return [svg("circle", { class: "node", cx: x, cy: y, r: 7 }), name, figure];
  });
  const view = { viewBox: `0 0 ${wide} ${ROW * places.size}`, role: "img", "aria-label": said(nodes, edges) };
  const picture = svg("svg", { ...view, class: "network tree" }, ...lines, ...marks);
  return h("div", {}, picture, words && h("p", { class: "soft" }, words));
}
