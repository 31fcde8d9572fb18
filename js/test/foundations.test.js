import assert from "node:assert/strict";
import { test } from "node:test";

import { asBudget } from "../src/numbers/budget.js";
import { canonical, digest } from "../src/numbers/canonical.js";
import { Coins, ReplayCoins, ScriptedCoins, SystemCoins } from "../src/numbers/coins.js";
import { InvalidSpec, InvalidValue, TacitError } from "../src/errors.js";
import { WORD, integerRoot, rootFloor, tighten, uniformSpread } from "../src/numbers/exact.js";
import { bucket, hash32, textId } from "../src/numbers/hashing.js";
import { hex, utf8 } from "../src/numbers/sha256.js";
import { read, unhex } from "./vectors.js";

const odds = read("odds.json");
const canonicals = read("canonical.json");
const hashes = read("hashing.json");
const replays = read("coins.json");

test("the odds of a thousand budgets are the golden vectors", () => {
  assert.equal(odds.odds.length, 1000);
  for (const { epsilon, odds: expected } of odds.odds) {
    assert.equal(String(asBudget(epsilon).odds), expected, JSON.stringify(epsilon));
  }
});

test("other spellings of a budget have one canonical form", () => {
  for (const { given, canonical: expected } of odds.spellings) assert.deepEqual(asBudget(given).wire, expected);
});

for (const wire of odds.bad) {
  test(`the budget ${JSON.stringify(wire)} is refused`, () => {
    assert.throws(() => asBudget(wire), InvalidSpec);
  });
}

for (const { value, canonical: bytes, digest: expected } of canonicals.cases) {
  test(`${JSON.stringify(value)} has the canonical bytes of the golden vector`, () => {
    assert.equal(hex(utf8(canonical(value))), bytes);
    assert.equal(digest(value), expected);
  });
}

for (const value of canonicals.bad) {
  test(`${JSON.stringify(value)} has no canonical form`, () => {
    assert.throws(() => canonical(value), InvalidSpec);
  });
}

test("what is not JSON has no canonical form", () => {
  for (const value of [undefined, NaN, Infinity, 5n, () => 1, Symbol("x"), [undefined]]) {
    assert.throws(() => canonical(value), InvalidSpec);
  }
});

test("hashes, buckets and ids of texts are the golden vectors", () => {
  for (const { seed, value, hash } of hashes.hash32) {
    assert.equal(hash32(seed, BigInt(value)), hash);
    if (BigInt(value) < 2n ** 53n) assert.equal(hash32(seed, Number(value)), hash);
  }
  for (const { seed, value, buckets, bucket: expected } of hashes.bucket) {
    assert.equal(bucket(seed, BigInt(value), buckets), expected);
  }
  for (const { key, text, id } of hashes.text_id) assert.equal(String(textId(key, text)), id);
});

test("a text with a lone surrogate has no id", () => {
  assert.throws(() => textId("key", "\ud800"), InvalidValue);
});

test("replayed words and uniform integers are the golden vectors", () => {
  for (const { seed, words, uniform } of replays.cases) {
    const coins = new ReplayCoins(unhex(seed));
    assert.deepEqual(words.map(() => String(coins.word())), words);
    assert.equal(coins.used, words.length);
    const draws = new ReplayCoins(unhex(seed));
    for (const { m, value } of uniform) assert.equal(String(draws.uniform(BigInt(m))), value);
  }
});

test("scripted words are used once and then end", () => {
  const coins = new ScriptedCoins([5n, 2n ** 64n - 1n, 7n]);
  assert.equal(coins.word(), 5n);
  assert.equal(coins.uniform(10), 9);
  assert.equal(coins.below(8n), true);
  assert.throws(() => coins.word(), RangeError);
});

test("only the operating system's coins are secure", () => {
  assert.equal(new SystemCoins().secure, true);
  assert.equal(new ReplayCoins(new Uint8Array()).secure, false);
  assert.throws(() => new Coins().word(), TacitError);
});

test("system coins do not repeat and have both halves", () => {
  const coins = new SystemCoins();
  const words = Array.from({ length: 2000 }, () => coins.word());
  // Birthday bound: 2000^2 / 2^65 < 2^-43.
  assert.equal(new Set(words).size, words.length);
  // A given bit is never set with probability 2^-2000.
  assert.equal(words.reduce((a, b) => a | b), WORD - 1n);
});

test("without a source of entropy system coins refuse to work", () => {
  const saved = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
  try {
    assert.throws(() => new SystemCoins().word(), /no crypto.getRandomValues/);
  } finally {
    Object.defineProperty(globalThis, "crypto", saved);
  }
});

test("integer roots are floors", () => {
  for (const x of [1n, 2n, 3n, 4n, 8n, 15n, 16n, 10n ** 30n, 10n ** 30n - 1n, WORD * WORD]) {
    for (const degree of [1n, 2n, 3n, 5n]) {
      const root = integerRoot(x, degree);
      assert.ok(root ** degree <= x && (root + 1n) ** degree > x, `${x} ${degree}`);
    }
  }
  assert.equal(rootFloor(4n * WORD, 2), 2n * WORD);
});

test("the spread of uniform draws is exact", () => {
  assert.deepEqual(uniformSpread(4), [WORD / 4n, WORD / 4n]);
  assert.deepEqual(uniformSpread(3, 4), [((WORD + 2n) / 3n) * (WORD / 4n), (WORD / 3n) * (WORD / 4n)]);
  assert.equal(tighten(100n, [3n, 2n]), 66n);
});
