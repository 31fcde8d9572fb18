/** Coins: where randomness comes from, one 64-bit word at a time. */

import { ABSTRACT, TacitError } from "../errors.js";
import { tidy } from "./exact.js";
import { concat, sha256 } from "./sha256.js";

const BLOCK_WORDS = 512;

/** A stream of uniform 64-bit words. `draw` supplies them as pairs of halves: low, high, low, high ... */
export class Coins {
  /** Whether a client may use these coins for a real report. */
  secure = false;
  /** How many words were consumed. */
  used = 0;
  /** The lower half of the word taken last. */
  low = 0;
  /** The upper half of the word taken last. */
  high = 0;
  /** @type {ArrayLike<number>} */
  #buffer = [];
  #position = 0;

  /** @returns {ArrayLike<number>} the halves of at least one further word */
  draw() {
    throw new TacitError(ABSTRACT);
  }

  /** Consume one word and leave its halves in `low` and `high`: fast, without a BigInt. */
  take() {
    if (this.#position === this.#buffer.length) {
      this.#buffer = this.draw();
      this.#position = 0;
    }
    this.low = this.#buffer[this.#position];
    this.high = this.#buffer[this.#position + 1];
    this.#position += 2;
    this.used += 1;
  }

  /** Consume one word. @returns {bigint} */
  word() {
    this.take();
    return (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  /**
   * An integer in [0, m) from one word: a Number where it is below 2^53, else a BigInt.
   * @template {number | bigint} M
   * @param {M} m
   * @returns {M extends number ? number : number | bigint}
   */
  uniform(m) {
    return /** @type {any} */ (tidy((this.word() * BigInt(m)) >> 64n));
  }

  /**
   * True with probability threshold/2^64, from one word.
   * @param {bigint} threshold
   * @returns {boolean}
   */
  below(threshold) {
    return this.word() < threshold;
  }
}

/** The operating system's entropy. Cannot be seeded. */
export class SystemCoins extends Coins {
  secure = true;

  draw() {
    if (!globalThis.crypto?.getRandomValues) {
      throw new TacitError("coins: this runtime has no crypto.getRandomValues");
    }
    // 4,096 bytes: browsers refuse more than 65,536 in one call, and most reports need a few words.
    return globalThis.crypto.getRandomValues(new Uint32Array(2 * BLOCK_WORDS));
  }
}

/** Word i is the first 8 bytes, little-endian, of SHA-256(seed || i as u64le). For vectors and tests only. */
export class ReplayCoins extends Coins {
  #seed;
  #counter = 0;

  /** @param {Uint8Array} seed */
  constructor(seed) {
    super();
    this.#seed = Uint8Array.from(seed);
  }

  draw() {
    const tail = new DataView(new ArrayBuffer(8));
    tail.setUint32(0, this.#counter, true);
    this.#counter += 1;
    const view = new DataView(sha256(concat(this.#seed, new Uint8Array(tail.buffer))).buffer);
    return [view.getUint32(0, true), view.getUint32(4, true)];
  }
}

/** Exactly the given words, then an error: lets a test walk along the edges of a threshold. */
export class ScriptedCoins extends Coins {
  #words;

  /** @param {Iterable<bigint>} words */
  constructor(words) {
    super();
    this.#words = [...words];
  }

  draw() {
    const word = this.#words.shift();
    if (word === undefined) throw new RangeError("scripted coins are used up");
    return [Number(word & 0xffffffffn), Number(word >> 32n)];
  }
}
