/**
 * Block responses on the device: a block of k among m points that more likely holds the value than not.
 * The twin of `tacit.device.kinds.blocks`.
 */

import { Device, bitAt, bitmap, coded, setBit } from "../base.js";
import { isPrime, paley, shapeOf, singer } from "../numbers/designs.js";
import { WORD, tighten, uniformSpread } from "../numbers/exact.js";
import { concat } from "../numbers/sha256.js";

const MAX_SUBSET_SIZE = 2 ** 12;
const MAX_CYCLIC_MODULUS = 2 ** 22;
const MAX_AFFINE_MODULUS = 2 ** 32 - 5;

/**
 * Words that put the value into the block. Rounded down, so that such a block stays within the odds.
 * @param {bigint} m
 * @param {bigint} k
 * @param {bigint} odds
 * @returns {bigint}
 */
export const includeThreshold = (m, k, odds) => (WORD * k * odds) / (k * odds + (m - k) * WORD);

/** What the block responses share: the decision whether the block contains the value. */
class Block extends Device {
  /**
   * Derive the decision threshold, and refuse a budget below the unevenness of the draws.
   * @param {number} m
   * @param {number} k
   * @param {import("../numbers/exact.js").Fraction} [spread] how unevenly blocks of one sort are drawn, at most
   */
  decide(m, k, spread = uniformSpread(k, m - k)) {
    const [points, inside] = [BigInt(m), BigInt(k)];
    const include = includeThreshold(points, inside, tighten(this.odds, spread));
    const ratio = [include * (points - inside), (WORD - include) * inside];
    const within = ratio[0] * spread[0] * WORD <= ratio[1] * spread[1] * this.odds;
    if (!within || ratio[1] * spread[0] * WORD > ratio[0] * spread[1] * this.odds) {
      this.reject(`epsilon is too small for ${m} points`);
    }
    /** Number of points. @type {number} */
    this.m = m;
    /** Number of points in a block. @type {number} */
    this.k = k;
    /** Words that put the value into the block. @type {bigint} */
    this.include = include;
  }

  /**
   * A position in the base block (below k) or past it, from two words: where the value will be put.
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {number}
   */
  pick(coins) {
    return coins.below(this.include) ? coins.uniform(this.k) : this.k + coins.uniform(this.m - this.k);
  }
}

/** Subset selection: a set of k values that more likely holds the true one than not. */
export class SS extends Block {
  static kind = "ss";
  static fields = ["epsilon", "size", "subset"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_SUBSET_SIZE);
    const k = this.checkInteger("subset", 1, this.size - 1);
    const cell = WORD / BigInt(this.size);
    this.decide(this.size, k, [cell, cell - 2n * BigInt(k)]);
  }

  /**
   * 1 + k words: the decision, then Floyd's sampler on the other values; a bitmap packed from bit 0.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value, this.m);
    const chosen = bitmap(this.m);
    const inside = coins.below(this.include);
    if (inside) setBit(chosen, index);
    for (let top = this.m - 1 - this.k + Number(inside); top < this.m - 1; top += 1) {
      const t = coins.uniform(top + 1);
      let at = t + Number(t >= index);
      if (bitAt(chosen, at)) at = top + Number(top >= index);
      setBit(chosen, at);
    }
    // The number of words must not tell whether the value was included.
    if (inside) coins.word();
    return chosen;
  }
}

/** @type {Map<string, Uint32Array>} */
const tables = new Map();

/**
 * All residues, those of the block first (increasing), then the others (increasing); built once per design.
 * @param {number} order
 * @param {number} dimension 1 for a Paley design
 * @returns {Uint32Array}
 */
function cyclicPoints(order, dimension) {
  const name = `${order} ${dimension}`;
  const known = tables.get(name);
  if (known) return known;
  const design = dimension === 1 ? paley(order) : singer(order, dimension);
  const points = new Uint32Array(design.modulus);
  for (let point = 0, inside = 0, outside = design.k; point < design.modulus; point += 1) {
    points[bitAt(design.block, point) ? inside++ : outside++] = point;
  }
  tables.set(name, points);
  return points;
}

/** Cyclic block response: the shift of one difference set that more likely holds the value than not. */
export class CBR extends Block {
  static kind = "cbr";
  static fields = ["epsilon", "size", "family", "order", "dimension"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_CYCLIC_MODULUS);
    /** @type {"singer" | "paley"} */
    this.family = this.choice("family", "singer", "paley");
    /** @type {number} */
    this.order = this.checkInteger("order", 2, MAX_CYCLIC_MODULUS);
    /** @type {number} */
    this.dimension = this.checkInteger("dimension", 1, 26);
    const { modulus, k } = shapeOf(this.family, this.order, this.dimension);
    if (modulus < this.size || modulus > MAX_CYCLIC_MODULUS) {
      this.reject(`the design must have from ${this.size} to ${MAX_CYCLIC_MODULUS} points`);
    }
    this.decide(modulus, k);
  }

  /**
   * Two words: the decision, and which residue i in or outside the block; reported is value - i.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const point = cyclicPoints(this.order, this.dimension)[this.pick(coins)];
    return coded((index + this.m - point) % this.m, this.m);
  }
}

/** Affine block response: an affine image of an interval that more likely holds the value than not. */
export class ABR extends Block {
  static kind = "abr";
  static fields = ["epsilon", "size", "modulus", "block", "state"];

  check() {
    /** @type {number} */
    this.size = this.checkSize(MAX_AFFINE_MODULUS);
    const m = this.checkInteger("modulus", Math.max(this.size, 3), MAX_AFFINE_MODULUS);
    if (!isPrime(m)) this.reject("modulus must be a prime");
    const k = this.checkInteger("block", 1, m - 1);
    this.choice("state", "counts", "log");
    this.decide(m, k);
  }

  /**
   * Three words: the multiplier w, the decision, the place s in or past the interval; c = w v - s.
   * @param {number} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const index = this.index(value);
    const m = BigInt(this.m);
    const w = 1 + coins.uniform((this.m - 1) / 2);
    // The product of two residues exceeds 2^53 in large domains.
    const c = (BigInt(w) * BigInt(index) + m - BigInt(this.pick(coins))) % m;
    return concat(coded(w, this.m), coded(c, this.m));
  }
}
