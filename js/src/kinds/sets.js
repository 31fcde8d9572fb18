/** Sets on the device: padding and sampling before a frequency oracle, the number of candidates in a set, and ticks. */

import { Device, innerOf, statedSize } from "../base.js";
import { areDifferent, isRising } from "../numbers/checks.js";
import { MAX_MEMBERS, Questions } from "./compose.js";
import { listed } from "../domains/domain.js";
import { ABSTRACT, InvalidSpec, InvalidValue } from "../errors.js";
import { WORD, areIntegers, ceilDiv, comesBefore, isLess } from "../numbers/exact.js";
import { GRR } from "./grr.js";

/** Randomised response inside padding and sampling, where it may run at an amplified epsilon; no kind of its own. */
class SampledGRR extends GRR {
  static amplifiable = true;

  check() {
    const l = BigInt(/** @type {any} */ (this.epsilon).sampled ?? 1);
    // The odds of the whole are 1 + (odds - 1) c/2^64, c the words of the likeliest element.
    this.odds = WORD + (((this.odds - WORD) / l) * WORD) / ceilDiv(WORD, l);
    super.check();
  }
}

const MAX_CANDIDATES = 2 ** 16;

/** A private set as increasing places below a size. @param {any} published @param {any} value @returns {number[]} */
function placesOf(published, value) {
  const given = Array.isArray(value) ? value : [-1];
  const places = given.map((place) => published.index(place, published.size)).sort((a, b) => a - b);
  if (!areDifferent(places)) throw new InvalidValue(`${published.kind}: items must differ`);
  return places;
}

/** What mechanisms on sets share: items, candidates and an inner oracle. */
class SetDevice extends Device {
  /** The part that is built here: an amplified epsilon is good nowhere else. */
  static own = "inner";

  /** @param {any} spec @param {(spec: any) => any} find @returns {Device} */
  static adopt(spec, find) {
    const kind = find(spec);
    return (kind === GRR ? SampledGRR : kind).fromSpec(spec);
  }

  check() {
    /** @type {any} */
    this.inner = innerOf(this, ["grr", "sue", "oue", "rue", "blh", "olh", "ss", "cbr"]);
    /** @type {number} */
    this.size = this.checkInteger("size", 1, 2 ** 22);
    /** @type {number[][]} */
    this.candidates = listed(/** @type {any} */ (this).candidates, this.kind, "candidates");
    if (this.candidates.length > MAX_CANDIDATES) this.reject(`candidates must be at most ${MAX_CANDIDATES} itemsets`);
    this.candidates.forEach((one, i, all) => {
      const inside = areIntegers(one, 0, this.size - 1) && isRising(one);
      if (!inside || !comesBefore(all[i - 1] ?? [], one)) {
        this.reject("candidates must be increasing lists of items, in increasing order");
      }
    });
    /** Number of candidates. */
    this.choices = this.candidates.length || this.size;
    const fits = this.inner.size === this.innerSize() && !isLess(this.budget.declared, this.inner.budget.declared);
    const { length } = /** @type {any} */ (this);
    if (!fits || (this.inner.epsilon.sampled ?? length) !== length) {
      this.reject("inner must be for all values, at this epsilon, amplified for the length if at all");
    }
  }

  /** Sets are no integers. */
  get valueCount() {
    return WORD;
  }

  /** The number of items, of which an answer holds some. */
  get domainSize() {
    return this.size;
  }

  get firstValue() {
    return [];
  }

  /** @param {any} value */
  checkValue(value) {
    this.contained(value);
  }

  /** The number of values of the inner mechanism. @returns {number} */
  innerSize() {
    throw new InvalidSpec(ABSTRACT);
  }

  /** Which candidates a set contains, increasing. @param {any} value @returns {number[]} */
  contained(value) {
    const items = placesOf(this, value);
    const all = this.candidates;
    return all.length ? all.flatMap((one, i) => (one.every((item) => items.includes(item)) ? [i] : [])) : items;
  }
}

/** Padding and sampling: one element of the set, filled up to `length` with distinct dummies, through an oracle. */
export class Padded extends SetDevice {
  static kind = "padded";
  static fields = ["epsilon", "size", "candidates", "inner", "length"];

  innerSize() {
    /** @type {number} */
    this.length = this.checkInteger("length", 1, 2 ** 16);
    return this.choices + this.length;
  }

  /** One word for the place, then the report on the element there. @param {any} value @param {import("../numbers/coins.js").Coins} coins */
  privatizeOne(value, coins) {
    const held = this.contained(value);
    const place = coins.uniform(Math.max(held.length, this.length));
    return this.inner.privatizeOne(held[place] ?? this.choices + place - held.length, coins);
  }
}

/** How many candidates a set contains, `most` and more counting alike, through an oracle on 0 .. most. */
export class SetSize extends SetDevice {
  static kind = "set_size";
  static fields = ["epsilon", "size", "candidates", "inner", "most"];

  innerSize() {
    /** @type {number} */
    this.most = this.checkInteger("most", 1, Math.min(this.choices, 2 ** 16));
    return this.most + 1;
  }

  /** The report on the number of candidates. @param {any} value @param {import("../numbers/coins.js").Coins} coins */
  privatizeOne(value, coins) {
    return this.inner.privatizeOne(Math.min(this.contained(value).length, this.most), coins);
  }
}

/** The family of ticks: member i asks whether item i is in the set, 1 for yes. */
export class Ticks extends Questions {
  static kind = "ticks";
  static fields = ["size", "mechanisms"];

  check() {
    /** @type {number} */
    this.size = this.checkInteger("size", 1, MAX_MEMBERS);
    if (this.mechanisms.length !== 1 || statedSize(this.mechanisms[0]) !== 2) {
      this.reject("mechanisms must hold one over two values, for ticked or not");
    }
    this.weights = Array(this.size).fill(1);
  }

  get length() {
    return this.size;
  }

  /** @returns {any} */
  get firstValue() {
    return [];
  }

  /** @param {any} value */
  checkValue(value) {
    placesOf(this, value);
  }

  /** Whether an item is in a set. @param {number} i @returns {(value: any) => number} */
  view(i) {
    return (value) => Number(placesOf(this, value).includes(i));
  }

  /** @returns {Device} the mechanism of every item */
  mechanism() {
    return this.mechanisms[0];
  }
}
