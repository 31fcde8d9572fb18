/** Ordered answers: the leaves of a question for ranges as people read them, and as the collector is asked for them. */

import { inside } from "../survey/fields.js";
import { short } from "../page/format.js";

/** A range that leaves nothing out. */
export const EVERYTHING = "any answer";

/** @param {any} spec the wire form of a domain */
function sizeOf({ kind, labels, low, high, step, edges, open_below: below, open_above: above }) {
  if (labels) return labels.length;
  return kind === "integers" ? (high - low) / step + 1 : edges.length - 1 + Number(below) + Number(above);
}

/** Domains of two values count as ordered: their order does not matter. @param {any} spec @returns {any} */
const asOrdered = (spec) =>
  spec.kind === "booleans"
    ? { ...spec, kind: "ordered", labels: ["false", "true"] }
    : { ...spec, kind: spec.kind === "categories" ? "ordered" : spec.kind };

/** An ordered domain, of which a question asks for ranges. */
export class Leaves {
  /** @param {any} given the wire form of the domain: ordered, integers or buckets, or one of two values */
  constructor(given) {
    const spec = asOrdered(given);
    this.spec = spec;
    /** @type {string} */
    this.kind = spec.kind;
    /** @type {number} */
    this.size = sizeOf(spec);
    /** @type {Map<any, number> | undefined} */
    this.places = undefined;
  }

  /** What the collector calls a leaf. @param {number} leaf @returns {any} */
  label(leaf) {
    const { kind, labels, low, step } = this.spec;
    if (kind === "ordered") return labels[leaf];
    if (kind === "integers") return low + leaf * step;
    const [from, to] = this.edges(leaf);
    if (from === undefined) return `< ${to}`;
    return to === undefined ? `>= ${from}` : `[${from}, ${to})`;
  }

  /** Where a bucket begins and ends; undefined where it is open. @param {number} leaf @returns {[any, any]} */
  edges(leaf) {
    const { edges, open_below: below } = this.spec;
    const at = leaf - Number(below);
    return [edges[at], edges[at + 1]];
  }

  /** An answer that falls on a leaf, as the collector is asked for it. @param {number} leaf @returns {string} */
  ask(leaf) {
    return this.kind === "buckets" ? inside(this.spec, leaf) : String(this.label(leaf));
  }

  /** The leaf that the collector calls so, or null. @param {any} label @returns {number | null} */
  place(label) {
    if (label === null || label === undefined) return null;
    if (this.kind === "integers") return (label - this.spec.low) / this.spec.step;
    this.places ??= new Map(Array.from({ length: this.size }, (_, leaf) => [this.label(leaf), leaf]));
    return this.places.get(label) ?? null;
  }

  /** A mark on an axis: where a leaf begins. @param {number} leaf @returns {string} */
  mark(leaf) {
    if (this.kind === "buckets") return this.edges(leaf)[0] ?? `< ${this.edges(leaf)[1]}`;
    const text = String(this.label(leaf));
    return short(text, 16);
  }

  /** A mark for everything up to and including a leaf. @param {number} leaf @returns {string} */
  upTo(leaf) {
    return this.kind === "buckets" ? (this.edges(leaf)[1] ?? "any") : this.mark(leaf);
  }

  /** Leaves in words, both ends included. @param {number} first @param {number} last @returns {string} */
  words(first, last) {
    if (first === 0 && last === this.size - 1) return EVERYTHING;
    if (this.kind !== "buckets") {
      return first === last ? String(this.label(first)) : `${this.label(first)} to ${this.label(last)}`;
    }
    const [[from], [, to]] = [this.edges(first), this.edges(last)];
    if (from === undefined) return `under ${to}`;
    return to === undefined ? `${from} or more` : `${from} to under ${to}`;
  }
}

/**
 * Rows of an answer as at most so many bars: neighbours are added up, and only single rows keep their intervals.
 * @param {Leaves} leaves
 * @param {any[]} rows
 * @param {string} mode raw or consistent
 * @param {number} most
 * @returns {any[]}
 */
export function barsOf(leaves, rows, mode, most) {
  const [width, group] = [Math.ceil(leaves.size / rows.length), Math.ceil(rows.length / most)];
  const bars = [];
  for (let at = 0; at < rows.length; at += group) {
    const cells = rows.slice(at, at + group).map((row) => row[mode] ?? row.raw);
    const estimate = cells.reduce((sum, cell) => sum + cell.estimate, 0);
    const added = { estimate, low: null, high: null, standard_error: null };
    const last = Math.min((at + group) * width, leaves.size) - 1;
    bars.push({ first: at * width, last, ...(group === 1 ? cells[0] : added) });
  }
  return bars;
}
