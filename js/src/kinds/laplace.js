/**
 * Discrete Laplace noise on the device: one coin word looked up in an exact table. No floats, no rejection.
 *
 * The noise Z has Pr[Z = z] proportional to a^|z|, so everything beyond a clamp again is a power of a. Cells are
 * rounded so that no likelihood ratio exceeds the declared one.
 */

import { Device, coded } from "../base.js";
import { InvalidSpec } from "../errors.js";
import { WORD, bisect, expFloor, rootFloor } from "../numbers/exact.js";
import { concat } from "../numbers/sha256.js";

const MAX_VALUES = 2 ** 14;
const MAX_OUTPUTS = 2 ** 16;
const ONE = 1n << 192n;

/**
 * (2^64/rate)^k over 2^192 for k = 0 .. count, every step rounded down.
 * @param {bigint} rate
 * @param {number} count
 * @returns {bigint[]}
 */
function powers(rate, count) {
  const list = [ONE];
  for (let k = 0; k < count; k += 1) list.push((list[k] << 64n) / rate);
  return list;
}

/**
 * Coin words of a weight over 1 + a, rounded down.
 * @param {bigint} weight
 * @param {bigint[]} power
 * @returns {bigint}
 */
const wordsOf = (weight, power) => (weight << 64n) / (ONE + power[1]);

/** @param {bigint[]} cells @returns {bigint[]} running sums without the last, which is 2^64 */
function runningSums(cells) {
  let sum = 0n;
  return cells.slice(0, -1).map((words) => (sum += words));
}

/**
 * The cell a coin word falls into. Not hardened against timing: the search depends on the noise, never on the value.
 * @param {bigint[]} cumulative
 * @param {bigint} word
 * @returns {number}
 */
const lookUp = (cumulative, word) => bisect(cumulative, (words) => word < words);

/** Summation with histogram encoding: a one-hot vector, discrete Laplace noise on every entry, clamped. */
export class SHE extends Device {
  static kind = "she";
  static fields = ["epsilon", "size", "grid", "bound"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_VALUES);
    /** @type {number} */
    this.grid = this.checkInteger("grid", 2, 256);
    if (this.grid % 2) {
      this.reject("grid must be even");
    }
    const [numerator, denominator] = this.budget.declared;
    /** 1/a over 2^64, rounded down. @type {bigint} */
    this.rate = expFloor([numerator, denominator * BigInt(2 * this.grid)]);
    const widest = Math.floor((MAX_OUTPUTS - 1 - this.grid) / 2);
    /** @type {number} */
    this.bound = this.checkInteger("bound", 1, widest);
    /** Number of different outputs of one entry. @type {number} */
    this.outputs = this.grid + 2 * this.bound + 1;
    /** @type {bigint[]} */
    this.cumulative = runningSums(mirroredCells(this));
  }

  /**
   * One word per entry: `size` outputs, each sent as output + bound.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const codes = Array.from({ length: this.size }, () => lookUp(this.cumulative, coins.word()));
    codes[index] = this.outputs - 1 - codes[index];
    return concat(...codes.map((code) => coded(code, this.outputs)));
  }
}

/**
 * Words of every output of an entry 0; those of an entry `grid` are the mirror image. The larger of two mirrored
 * outputs is reduced to the half odds times the smaller; the middle one takes the words that are left.
 * @param {SHE} device
 * @returns {bigint[]}
 */
function mirroredCells({ grid, bound, outputs, rate, odds }) {
  const power = powers(rate, grid + bound);
  // Weights over 1 + a: (1 - a) a^|z| inside, a^|z| at the ends, which stand for all beyond them.
  const cells = Array.from({ length: outputs }, (_, i) => {
    const z = Math.abs(i - bound);
    return wordsOf(power[z] - (i && i < outputs - 1 ? power[z + 1] : 0n), power) || 1n;
  });
  const half = rootFloor(odds, 2);
  const middle = (outputs - 1) / 2;
  for (let j = 0; j < middle; j += 1) {
    const most = (cells[outputs - 1 - j] * half) >> 64n;
    if (cells[j] > most) cells[j] = most;
  }
  cells[middle] += WORD - cells.reduce((sum, words) => sum + words, 0n);
  if (cells[middle] < 1n) throw new InvalidSpec("she: bound is too large for this epsilon");
  return cells;
}

/** A number on the grid 0 .. top plus discrete Laplace noise, clamped to -bound .. top + bound. */
export class DiscreteLaplace extends Device {
  static kind = "dlap";
  static fields = ["epsilon", "top", "bound"];

  check() {
    /** @type {number} */
    this.top = this.checkInteger("top", 1, MAX_OUTPUTS - 1);
    /** @type {number} */
    this.bound = this.checkInteger("bound", 0, MAX_OUTPUTS - 1);
    /** The largest noise that a clamped output can tell apart. @type {number} */
    this.reach = this.top + this.bound;
    /** Number of different outputs. @type {number} */
    this.outputs = this.top + 2 * this.bound + 1;
    const beyond = fittedTails(this).slice(1);
    /** Words of noise of at most z, for z = -reach .. reach - 1. @type {bigint[]} */
    this.cumulative = [...[...beyond].reverse(), ...beyond.map((words) => WORD - words)];
  }

  get valueCount() {
    return this.top + 1;
  }

  /**
   * One word: value plus noise, clamped, sent as output + bound.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const noisy = this.index(value, this.valueCount) + lookUp(this.cumulative, coins.word()) - this.reach;
    const code = Math.min(Math.max(noisy + this.bound, 0), this.outputs - 1);
    return coded(code, this.outputs);
  }
}

/**
 * Words of noise of at least k, for k = 0 .. reach, at the largest rate whose rounded table keeps the odds.
 * @param {DiscreteLaplace} device
 * @returns {bigint[]}
 */
function fittedTails({ budget, odds, top, bound, reach }) {
  const [numerator, denominator] = budget.declared;
  for (let slack = 52n; slack > 0n; slack -= 4n) {
    // The first attempt gives nothing away, later ones more and more.
    const [part, whole] = slack === 52n ? [1n, 1n] : [(1n << slack) - 1n, 1n << slack];
    const tails = tailsOf(expFloor([numerator * part, denominator * whole * BigInt(top)]), reach);
    if (extremes(tails, top, bound).every(([a, b]) => a > 0n && a * WORD <= odds * b)) return tails;
  }
  // An output would be rarer than one word in 2^64.
  throw new InvalidSpec("dlap: top or bound is too large for this epsilon");
}

/**
 * (largest, smallest) words of each output between all values.
 * @param {bigint[]} tails
 * @param {number} top
 * @param {number} bound
 * @returns {bigint[][]}
 */
function extremes(tails, top, bound) {
  const cells = tails.slice(0, -1).map((words, k) => words - tails[k + 1]);
  const pairs = [[tails[bound], tails[top + bound]]];
  for (let beyond = 0; beyond < bound; beyond += 1) pairs.push([cells[beyond], cells[beyond + top]]);
  if (top > 1) pairs.push([cells[0], cells[top - 1]]);
  return pairs;
}

/** @param {bigint} rate @param {number} reach @returns {bigint[]} all cells rounded down but the one of no noise */
function tailsOf(rate, reach) {
  const power = powers(rate, reach);
  const tails = new Array(reach + 1);
  tails[reach] = wordsOf(power[reach], power);
  for (let k = reach - 1; k > 0; k -= 1) tails[k] = tails[k + 1] + wordsOf(power[k] - power[k + 1], power);
  tails[0] = WORD - tails[1];
  return tails;
}
