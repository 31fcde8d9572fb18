/**
 * Privacy budgets: a declared epsilon, a share of one, or one amplified by padding and sampling.
 *
 * A budget is text on the wire ("1.5") or a small object ({"of": "1.5", "share": "1/3"}); its odds are derived
 * on every device from that text and never transmitted.
 *
 * @typedef {string | {of: string, share: string} | {of: string, sampled: number}} WireBudget
 * @typedef {object} Budget
 * @property {WireBudget} wire the canonical wire form
 * @property {import("./exact.js").Fraction} declared the declared epsilon
 * @property {bigint} odds floor(e^epsilon * 2^64): no realised likelihood ratio may exceed odds/2^64
 */

import { InvalidSpec } from "../errors.js";
import { WORD, areIntegers, expFloor, scaledDecimal, shortestDecimal } from "./exact.js";

const SCALE = 10n ** 18n;

/**
 * A budget from its wire form.
 * @param {unknown} value
 * @returns {Budget}
 */
export function asBudget(value) {
  if (typeof value !== "object" || value === null) return epsilon(value);
  const { of, share, sampled } = /** @type {Record<string, unknown>} */ (value);
  const names = Object.keys(value).sort().join();
  if (names === "of,share") return shareOf(epsilon(of), share);
  if (names === "of,sampled") return amplified(epsilon(of), sampled);
  throw new InvalidSpec('epsilon must have the fields "of" and one of "share" and "sampled"');
}

/**
 * A declared epsilon: decimal text between 0.001 and 32, kept in its shortest form.
 * @param {unknown} value
 * @returns {Budget}
 */
function epsilon(value) {
  const text = String(value).trim();
  const scaled = typeof value === "string" ? scaledDecimal(text, 18) : -1n;
  if (scaled * 1000n < SCALE || scaled > 32n * SCALE) {
    throw new InvalidSpec('epsilon must be decimal text from "0.001" to "32" with at most 18 decimals');
  }
  return budget(shortestDecimal(text), [scaled, SCALE]);
}

/**
 * A share of an epsilon: what one of several reports of the same respondent may spend.
 * @param {Budget} of
 * @param {unknown} share
 * @returns {Budget}
 */
function shareOf(of, share) {
  const match = typeof share === "string" && /^([1-9][0-9]{0,8})\/([1-9][0-9]{0,8})$/.exec(share);
  const [part, whole] = match ? match.slice(1).map(Number) : [1, 0];
  if (part > whole) throw new InvalidSpec('share must be text such as "1/3", at most 1');
  const common = gcd(part, whole);
  const wire = { of: /** @type {string} */ (of.wire), share: `${part / common}/${whole / common}` };
  return budget(wire, [of.declared[0] * BigInt(part), of.declared[1] * BigInt(whole)]);
}

/**
 * Epsilon for a report on one of `sampled` padded items: e^epsilon' = sampled * (e^epsilon - 1) + 1.
 * Valid only for GRR over a domain with `sampled` distinct dummies.
 * @param {Budget} of
 * @param {unknown} sampled
 * @returns {Budget}
 */
function amplified(of, sampled) {
  if (!areIntegers([sampled], 1, 2 ** 20)) throw new InvalidSpec("sampled must be an integer from 1 to 2^20");
  const wire = { of: /** @type {string} */ (of.wire), sampled: Number(sampled) };
  return budget(wire, of.declared, BigInt(wire.sampled) * (of.odds - WORD) + WORD);
}

/**
 * @param {WireBudget} wire
 * @param {import("./exact.js").Fraction} declared
 * @param {bigint} [odds]
 * @returns {Budget}
 */
const budget = (wire, declared, odds = expFloor(declared)) => ({ wire, declared, odds });

/** @param {number} a @param {number} b @returns {number} */
const gcd = (a, b) => (b ? gcd(b, a % b) : a);
