/** Several questions to one respondent: one of them at full epsilon, or all of them at shares of it. */

import { Device, littleEndian } from "../base.js";
import { Coins } from "../numbers/coins.js";
import { InvalidSpec, InvalidValue } from "../errors.js";
import { areIntegers, isLess } from "../numbers/exact.js";
import { Published } from "../nested.js";
import { concat } from "../numbers/sha256.js";

/** The most members of a family. */
export const MAX_MEMBERS = 2 ** 20;
const MAX_WEIGHT = 2 ** 32;
const MAX_ANSWERS = 256;
const MAX_PAYLOAD = 2 ** 16;
const MAX_ATTRIBUTES = 1024;
/** The most answers of an attribute, cells of a view and combinations of a grid. */
export const MAX_SIZE = 2 ** 40;

/** Coins that are all zero, to measure how many bytes a report has, which depends on neither value nor coins. */
class NoCoins extends Coins {
  draw() {
    return [0, 0];
  }
}

/** @param {string} kind @param {unknown} given @param {number} most @returns {Device[]} */
function asMembers(kind, given, most) {
  const members = Array.isArray(given) ? given : [];
  if (members.length < 1 || members.length > most || !members.every((member) => member instanceof Device)) {
    throw new InvalidSpec(`${kind}: members must be a list of 1 to ${most} mechanisms`);
  }
  if (members.some((member) => member.epsilon.sampled)) throw new InvalidSpec(`${kind}: members must not be amplified`);
  return members;
}

/** @param {string} kind @param {unknown} value @param {number} count @returns {any[]} one answer per question */
export function answersOf(kind, value, count) {
  if (Array.isArray(value) && value.length === count) return value;
  throw new InvalidValue(`${kind}: the value must be a list of ${count} answers`);
}

/**
 * The explicit family: question i is attribute i of the respondent's answers, with its own mechanism.
 * Another family has its own `length`, `weights`, `view` and `mechanism`.
 */
export class Questions extends Published {
  static kind = "questions";
  static fields = ["mechanisms", "weights"];

  begin() {
    /** @type {Device[]} */
    this.mechanisms = asMembers(this.kind, /** @type {any} */ (this).mechanisms, MAX_MEMBERS);
    /** Checked by the mechanism that draws with them. @type {number[]} */
    this.weights = /** @type {any} */ (this).weights;
  }

  get length() {
    return this.mechanisms.length;
  }

  /** What a device is given of the answers to several attributes. @param {number[]} answers @returns {any} */
  ofAnswers(answers) {
    return answers;
  }

  /** A value that every respondent could have. @returns {any} */
  get firstValue() {
    return this.mechanisms.map((mechanism) => mechanism.firstValue);
  }

  /** Check all of a value: whether it is refused must not depend on the member that is drawn. @param {any} value */
  checkValue(value) {
    const answers = answersOf(this.kind, value, this.length);
    this.mechanisms.forEach((mechanism, i) => mechanism.checkValue(answers[i]));
  }

  /** Attribute i of a list of answers. @param {number} i @returns {(value: any) => any} */
  view(i) {
    return (value) => answersOf(this.kind, value, this.length)[i];
  }

  /** @param {number} i @returns {Device} */
  mechanism(i) {
    return this.mechanisms[i];
  }
}

/** What families over several attributes share: how many answers each has. */
export class Attributes extends Questions {
  check() {
    /** @type {number[]} */
    this.sizes = /** @type {any} */ (this).sizes;
    if (!areIntegers(this.sizes, 2, MAX_SIZE) || !this.sizes.length || this.sizes.length > MAX_ATTRIBUTES) {
      this.reject("sizes must be integers from 2 on, one per attribute");
    }
  }

  get firstValue() {
    return this.sizes.map(() => 0);
  }

  /** @param {any} value */
  checkValue(value) {
    this.answers(value);
  }

  /** The checked answers to all attributes. @param {any} value @returns {number[]} */
  answers(value) {
    const given = answersOf(this.kind, value, this.sizes.length);
    return given.map((answer, i) => this.index(answer, this.sizes[i]));
  }
}

/** One member of a family, drawn by public coins, at the full epsilon. */
export class OneOf extends Device {
  static kind = "one_of";
  static fields = ["epsilon", "family", "payload_bytes"];

  check() {
    /** @type {Questions} */
    this.family = /** @type {any} */ (this).family;
    if (!(this.family instanceof Questions)) this.reject("family must be a family of questions");
    const { length, weights, mechanisms } = this.family;
    if (!length || length > MAX_MEMBERS || !areIntegers(weights, 1, Infinity, length)) {
      this.reject(`family must have 1 to ${MAX_MEMBERS} members with positive weights`);
    }
    /** The sum of the weights. @type {number} */
    this.total = weights.reduce((sum, weight) => sum + weight, 0);
    if (this.total > MAX_WEIGHT) this.reject(`weights must add up to at most ${MAX_WEIGHT}`);
    if (mechanisms.some(({ budget }) => isLess(this.budget.declared, budget.declared))) {
      this.reject("a member's epsilon must be at most epsilon");
    }
    const widths = mechanisms.map((member) => member.privatizeOne(member.firstValue, new NoCoins()).length);
    /** @type {number} */
    this.payload_bytes = this.checkInteger("payload_bytes", widths.reduce((a, b) => Math.max(a, b)), MAX_PAYLOAD);
  }

  get valueCount() {
    return /** @type {any} */ (this.family).size ?? super.valueCount;
  }

  get domainSize() {
    return /** @type {any} */ (this.family).size ?? 0;
  }

  get firstValue() {
    return this.family.firstValue;
  }

  /** @param {any} value */
  checkValue(value) {
    this.family.checkValue(value);
  }

  /** A report begins with its member, four bytes little-endian. @param {Uint8Array} report */
  unpack(report) {
    return { member: new DataView(report.buffer).getUint32(0, true), payload: report.slice(4) };
  }

  /** One word for the member, then the words of its mechanism. @param {any} value @param {import("../numbers/coins.js").Coins} coins */
  privatizeOne(value, coins) {
    const { family, payload_bytes: width } = this;
    this.checkValue(value);
    // The member is drawn before anything looks at its answer, so which one it is says nothing about the value.
    let rest = coins.uniform(this.total);
    const member = family.weights.findIndex((weight) => (rest -= weight) < 0);
    const payload = family.mechanism(member).privatizeOne(family.view(member)(value), coins);
    // All reports have the same width: the length of one must not tell more than its member.
    return concat(littleEndian(member, 4), payload, new Uint8Array(width - payload.length));
  }
}

/** Every member is answered; the members' epsilons add up to at most epsilon. */
export class AllOf extends Device {
  static kind = "all_of";
  static fields = ["epsilon", "members", "state"];

  check() {
    /** @type {Device[]} */
    this.members = asMembers(this.kind, /** @type {any} */ (this).members, MAX_ANSWERS);
    /** @type {import("../numbers/exact.js").Fraction} */
    const none = [0n, 1n];
    const spent = this.members.reduce(([a, b], { budget: { declared } }) => {
      return /** @type {typeof none} */ ([a * declared[1] + declared[0] * b, b * declared[1]]);
    }, none);
    if (isLess(this.budget.declared, spent)) {
      this.reject("the members' epsilons must add up to at most epsilon");
    }
    this.choice("state", "joint", "log", "members");
  }

  get domainSize() {
    return 0;
  }

  get firstValue() {
    return this.members.map((member) => member.firstValue);
  }

  /** @param {any} value */
  checkValue(value) {
    const answers = answersOf(this.kind, value, this.members.length);
    this.members.forEach((member, i) => member.checkValue(answers[i]));
  }

  /** The words of every member, in order. @param {any} value @param {import("../numbers/coins.js").Coins} coins */
  privatizeOne(value, coins) {
    this.checkValue(value);
    return concat(...this.members.map((member, i) => member.privatizeOne(value[i], coins)));
  }
}
