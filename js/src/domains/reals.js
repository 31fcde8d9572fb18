/**
 * Domains of numbers: integers on a grid, and reals in half-open buckets. The twin of `tacit.device.domains.reals`.
 * A number is read as the decimal its owner wrote; a float stands for its shortest decimal.
 */

import { Attribute, listed } from "./domain.js";
import { InvalidSpec, InvalidValue } from "../errors.js";
import { bisect, isLess, shortestDecimal, tidy } from "../numbers/exact.js";

const SAFE = Number.MAX_SAFE_INTEGER;
const MAX_EDGES = 2 ** 20;
const NUMBER = /^[+-]?([0-9]{1,40}(\.[0-9]{1,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?$/;
const EDGE = /^-?[0-9]{1,15}(?:\.[0-9]{1,18})?$/;

/**
 * The exact number a value stands for; undefined for NaN, infinities, booleans and other text.
 * @param {unknown} value
 * @returns {import("../numbers/exact.js").Fraction | undefined}
 */
export function asNumber(value) {
  if (typeof value === "bigint") return [value, 1n];
  if (typeof value === "object" || !NUMBER.test(String(value))) return undefined;
  const [mantissa, exponent = 0] = String(value).split(/e/i);
  const [whole, decimals = ""] = mantissa.split(".");
  const digits = BigInt(whole + decimals);
  const places = Number(exponent) - decimals.length;
  return places >= 0 ? [digits * 10n ** BigInt(places), 1n] : [digits, 10n ** BigInt(-places)];
}

/** The shortest decimal text of an edge: "01.50" -> "1.5". @param {string} who @param {unknown} given */
function canonicalEdge(who, given) {
  const text = Number.isSafeInteger(given) ? String(given) : typeof given === "string" ? given : "";
  if (!EDGE.test(text)) {
    throw new InvalidSpec(`${who}: an edge must be decimal text such as "-0.5", with at most 15 digits and 18 decimals`);
  }
  return shortestDecimal(text);
}

/** The integers low, low + step, ..., high. */
export class Integers extends Attribute {
  static kind = "integers";
  static fields = ["name", "low", "high", "step"];

  check() {
    /** @type {number} */
    this.low = this.checkInteger("low", -SAFE, SAFE);
    /** @type {number} */
    this.high = this.checkInteger("high", -SAFE, SAFE);
    /** @type {number} */
    this.step = this.checkInteger("step", 1, SAFE);
    const reach = BigInt(this.high) - BigInt(this.low);
    if (reach < 0n || reach % BigInt(this.step) || reach / BigInt(this.step) >= SAFE) {
      this.reject("high must be low plus fewer than 2^53 whole steps");
    }
    /** @type {number} */
    this.last = Number(reach / BigInt(this.step));
  }

  get size() {
    return this.last + 1;
  }

  /** @param {number | bigint} index */
  label(index) {
    return Number(BigInt(this.low) + BigInt(index) * BigInt(this.step));
  }

  /** @param {any} value */
  encode(value) {
    const [top, bottom] = asNumber(value) ?? [0n, 0n];
    const above = bottom && top % bottom === 0n ? top / bottom - BigInt(this.low) : -1n;
    const step = BigInt(this.step);
    if (above < 0n || above % step || above / step >= BigInt(this.size)) {
      const steps = this.step === 1 ? "" : ` in steps of ${this.step}`;
      this.refuse(`must be an integer from ${this.low} to ${this.high}${steps}`);
    }
    return tidy(above / step);
  }
}

/** Real numbers in half-open buckets [edge, next edge); open ends get a bucket of their own. */
export class Buckets extends Attribute {
  static kind = "buckets";
  static fields = ["name", "edges", "open_below", "open_above"];

  check() {
    const { open_below: below, open_above: above, edges: given } = /** @type {any} */ (this);
    const edges = listed(given, this.who, "edges");
    if (typeof below !== "boolean" || typeof above !== "boolean") {
      this.reject("open_below and open_above must be true or false");
    }
    /** @type {boolean} */
    this.open_below = below;
    /** @type {boolean} */
    this.open_above = above;
    /** @type {string[]} */
    this.edges = edges.map((edge) => canonicalEdge(this.who, edge));
    if (edges.length < 1 || edges.length > MAX_EDGES || this.size < 1) {
      this.reject(`edges must be 2 to ${MAX_EDGES} numbers, or 1 with an open end`);
    }
    /** @type {import("../numbers/exact.js").Fraction[]} */
    this.bounds = this.edges.map((edge) => /** @type {import("../numbers/exact.js").Fraction} */ (asNumber(edge)));
    if (this.bounds.some((edge, i, all) => i > 0 && !isLess(all[i - 1], edge))) {
      this.reject("edges must increase");
    }
  }

  get size() {
    return this.edges.length - 1 + Number(this.open_below) + Number(this.open_above);
  }

  /** @param {number} index */
  label(index) {
    const { edges } = this;
    const place = Number(index) - Number(this.open_below);
    if (place < 0) return `< ${edges[0]}`;
    return place === edges.length - 1 ? `>= ${edges[place]}` : `[${edges[place]}, ${edges[place + 1]})`;
  }

  /** @param {any} value */
  encode(value) {
    const number = asNumber(value);
    if (!number) throw new InvalidValue(`${this.name}: the value must be a number or decimal text`);
    const index = bisect(this.bounds, (edge) => isLess(number, edge)) - 1 + Number(this.open_below);
    return index >= 0 && index < this.size ? index : this.refuse(`must be ${limitsOf(this)}`);
  }
}

/** The ends of the buckets in words. @param {Buckets} buckets @returns {string} */
function limitsOf({ edges, open_below: below, open_above: above }) {
  const parts = [below ? "" : `at least ${edges[0]}`, above ? "" : `below ${edges.at(-1)}`];
  return parts.filter(Boolean).join(" and ");
}
