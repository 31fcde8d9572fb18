/**
 * A yes/no state over time within one epsilon for life: a tree over windows, of which a device follows one level.
 * Changes are multiplied by a pattern of signs that is drawn once, and all else is fair coins (docs/maths/tree_steps.md).
 */

import { Device, randomBytes } from "../base.js";
import { InvalidSpec, InvalidValue } from "../errors.js";
import { WORD, areIntegers, ceilDiv } from "../numbers/exact.js";
import { KEY_BYTES, MemoCoins, message } from "./memo.js";
import { hex, hmac, utf8 } from "../numbers/sha256.js";
import { zeroThreshold } from "./unary.js";

const MAX_CHANGES = 32;
const MAX_NODES = 2 ** 16;
const MAX_WEIGHT = 2 ** 32;
const HALF = WORD / 2n;

/** @param {number} n @param {number} k @returns {number} n over k */
function choose(n, k) {
  let found = 1;
  for (let i = 0; i < k; i += 1) found = (found * (n - i)) / (i + 1);
  return found;
}

/** @param {number} changes @param {number} least @returns {number} patterns of so many signs with at least `least` plus signs */
export function patternCount(changes, least) {
  let found = 0;
  for (let plus = Math.max(least, 0); plus <= changes; plus += 1) found += choose(changes, plus);
  return found;
}

/** @param {number} m @returns {bigint[]} most and fewest words of an outcome of uniform(m) */
const shares = (m) => [ceilDiv(WORD, BigInt(m)), WORD / BigInt(m)];

/**
 * Words of 2^64 that draw a pattern of at least `least` plus signs; rounded down, so that fewer do.
 * @param {bigint} odds
 * @param {number} changes
 * @param {number} least
 * @returns {bigint}
 */
export function plusWords(odds, changes, least) {
  const count = patternCount(changes, least);
  const [many, others] = [BigInt(count), BigInt(2 ** changes - count)];
  const [[mostIn, leastIn], [mostOut, leastOut]] = [shares(count), shares(2 ** changes - count)];
  const tight = (odds * leastIn * leastOut) / (mostIn * mostOut);
  return (WORD * many * tight) / (many * tight + others * WORD);
}

/**
 * The pattern of this rank among those of at least `least` plus signs: sign i is a plus if entry i is 1.
 * @param {number} rank
 * @param {number} changes
 * @param {number} least
 * @returns {number[]}
 */
export function rankedPattern(rank, changes, least) {
  const pattern = Array(changes).fill(0);
  for (let place = changes - 1; place >= 0; place -= 1) {
    const without = patternCount(place, least);
    if (rank >= without) {
      rank -= without;
      least -= 1;
      pattern[place] = 1;
    }
  }
  return pattern;
}

/** What a device keeps between reports: its secret, and a keyed hash of the states that it answered from. */
export class StepMemory {
  /**
   * @param {Uint8Array} secret 32 random bytes, made once per campaign and never sent
   * @param {string} campaign
   * @param {{nodes?: number, tag?: string}} [kept]
   */
  constructor(secret, campaign, { nodes = 0, tag = "" } = {}) {
    if (secret.length !== KEY_BYTES) throw new InvalidSpec(`tree_steps: the secret must have ${KEY_BYTES} random bytes`);
    this.secret = Uint8Array.from(secret);
    this.campaign = campaign;
    /** How many nodes the hash is about. */
    this.nodes = nodes;
    /** In hexadecimal. */
    this.tag = tag;
  }

  /** @param {Uint8Array} parameters @returns {MemoCoins} the coins that are drawn once */
  once(parameters) {
    return new MemoCoins(this.secret, this.campaign, parameters, utf8("once"));
  }

  /** @param {Uint8Array} parameters @param {number[]} states @returns {string} the keyed hash of these states */
  hashed(parameters, states) {
    return hex(hmac(this.secret, message("LDP-STEP-1", utf8(this.campaign), parameters, Uint8Array.from(states))));
  }

  /** Note a further node; its states must go on from those before. @param {Uint8Array} parameters @param {number[]} states */
  extend(parameters, states) {
    const before = this.hashed(parameters, states.slice(0, this.nodes));
    if (states.length <= this.nodes || (this.nodes && before !== this.tag)) {
      throw new InvalidValue("tree_steps: the states do not go on from those that this device reported on");
    }
    this.nodes = states.length;
    this.tag = this.hashed(parameters, states);
  }
}

/** Signs about the changes of a yes/no state, one level of a tree over windows (T-STEP, T-TREE). */
export class TreeSteps extends Device {
  static kind = "tree_steps";
  static fields = ["epsilon", "fanout", "levels", "count", "changes", "thresholds", "weights", "one_way"];

  check() {
    /** @type {number} */
    this.fanout = this.checkInteger("fanout", 2, 16);
    /** @type {number} */
    this.levels = this.checkInteger("levels", 1, 16);
    if (this.fanout ** this.levels > MAX_NODES) this.reject(`fanout^levels must be at most ${MAX_NODES}`);
    /** Number of windows. @type {number} */
    this.count = this.checkInteger("count", this.fanout ** (this.levels - 1), this.fanout ** this.levels - 1);
    /** @type {boolean} */
    this.one_way = this.choice("one_way", true, false);
    /** @type {number} */
    this.changes = this.checkInteger("changes", 1, this.one_way ? 1 : MAX_CHANGES);
    const { thresholds, weights } = /** @type {any} */ (this);
    /** The least number of plus signs of a favoured pattern, per level. @type {number[]} */
    this.thresholds = thresholds;
    /** @type {number[]} */
    this.weights = weights;
    if (!areIntegers(thresholds, 1, MAX_CHANGES, this.levels) || thresholds.some((t, h) => t > this.patterned(h))) {
      this.reject("thresholds must be positive integers, one per level, and at most its changes");
    }
    if (!areIntegers(weights, 1, MAX_WEIGHT, this.levels) || weights.reduce((a, b) => a + b) > MAX_WEIGHT) {
      this.reject(`weights must be positive integers, one per level, that add up to at most ${MAX_WEIGHT}`);
    }
    /** One-way states: words that set the bit of a node without a change. @type {bigint} */
    this.zeroWords = zeroThreshold(HALF, this.odds);
    /** The digest that separates the coins of this mechanism from those of any other. @type {Uint8Array} */
    this.parameters = Uint8Array.from(this.digest.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  }

  get valueCount() {
    return 2;
  }

  /** @param {number} level @returns {number} how many nodes of a level end within all windows */
  nodes(level) {
    return Math.floor(this.count / this.fanout ** level);
  }

  /** @param {number} level @returns {number} how many changes a device of this level may report */
  patterned(level) {
    return Math.min(this.changes, this.nodes(level));
  }

  /** @param {number} level @param {number} window @returns {boolean} whether a node of the level ends with the window */
  isDue(level, window) {
    const size = this.fanout ** level;
    return window >= 0 && window < this.count && (window + 1) % size === 0;
  }

  /**
   * The level of a device, and its pattern of signs.
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {{level: number, pattern: number[]}}
   */
  drawOnce(coins) {
    let rest = coins.uniform(this.weights.reduce((a, b) => a + b));
    const level = this.weights.findIndex((weight) => (rest -= weight) < 0);
    if (this.one_way) return { level, pattern: [] };
    const [changes, least] = [this.patterned(level), this.thresholds[level]];
    const many = patternCount(changes, least);
    if (coins.below(plusWords(this.odds, changes, least))) {
      return { level, pattern: rankedPattern(coins.uniform(many), changes, least) };
    }
    // Patterns with fewer plus signs are those that have enough minus signs.
    const minus = rankedPattern(coins.uniform(2 ** changes - many), changes, changes - least + 1);
    return { level, pattern: minus.map((sign) => 1 - sign) };
  }

  /** @param {StepMemory} memory @returns {number} the level that a device follows for life */
  levelOf(memory) {
    return this.drawOnce(memory.once(this.parameters)).level;
  }

  /**
   * The report on the last of these nodes.
   * @param {number[]} states the state at the end of every node of the level so far
   * @param {StepMemory} memory
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  report(states, memory, coins) {
    const { level, pattern } = this.drawOnce(memory.once(this.parameters));
    const told = this.#states(states);
    if (told.length > this.nodes(level)) {
      throw new InvalidValue(`tree_steps: a device of level ${level} has at most ${this.nodes(level)} nodes`);
    }
    memory.extend(this.parameters, told);
    return Uint8Array.of(2 * level + Number(this.#bit(told, this.patterned(level), pattern, coins)));
  }

  /** @param {number[]} states @param {number} changes @param {number[]} pattern @param {import("../numbers/coins.js").Coins} coins */
  #bit(states, changes, pattern, coins) {
    const steps = states.map((state, j) => state - (j ? states[j - 1] : 0));
    const last = steps.pop() ?? 0;
    const earlier = steps.filter(Boolean).length;
    // Changes beyond those that are covered count as none: this is what makes epsilon hold for life.
    const step = earlier < changes ? last : 0;
    if (this.one_way) return coins.below(step ? HALF : this.zeroWords);
    if (!step) return coins.below(HALF);
    return step > 0 ? pattern[earlier] : 1 - pattern[earlier];
  }

  /** @param {any} value @returns {number[]} */
  #states(value) {
    const states = Array.isArray(value) ? value : [value];
    if (states.length && states.every((state) => state === 0 || state === 1)) return states;
    return this.refuse("a state must be 0 (off) or 1 (on), one per node");
  }

  /** @param {any} value */
  checkValue(value) {
    this.#states(value);
  }

  /**
   * The report of a new device, whose secret is the next four coin words, on a state or on several in a row.
   * @param {any} value
   * @param {import("../numbers/coins.js").Coins} coins
   * @returns {Uint8Array}
   */
  privatizeOne(value, coins) {
    const states = this.#states(value);
    return this.report(states, new StepMemory(randomBytes(coins, KEY_BYTES / 8), ""), coins);
  }
}
