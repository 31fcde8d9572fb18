import assert from "node:assert/strict";
import { test } from "node:test";

import { DBitFlip } from "../src/kinds/bit_flip.js";
import { deviceOf } from "../src/kinds.js";
import { alphaRound } from "../src/kinds/mean.js";
import { ReplayCoins } from "../src/numbers/coins.js";
import { MemoCoins, Memory } from "../src/kinds/memo.js";
import { hex, utf8 } from "../src/numbers/sha256.js";

const SECRET = Uint8Array.from({ length: 32 }, (_, i) => i);

/** @param {Record<string, any>} inner @param {number} most */
const memoized = (inner, most) => deviceOf({ kind: "memo", inner, most_values: most, step: 0, epsilon: inner.epsilon });

test("memoised coins match the published vector", () => {
  const coins = new MemoCoins(SECRET, "c1", new Uint8Array(32), utf8("blue"));
  const words = Array.from({ length: 4 }, () => coins.word());
  assert.deepEqual(
    words.map((word) => word.toString(16)),
    ["bbf152033e8675d8", "d141c169e3c31117", "ce9c3ed6d7697cc4", "5bff65ec4285217d"],
  );
  assert.ok(coins.secure);
});

test("equal values get equal reports, and beyond the cap the last report is repeated", () => {
  const device = memoized({ kind: "grr", size: 64, epsilon: "8" }, 2);
  const memory = new Memory(SECRET, "cap");
  const [one, two, three, again, last] = [1, 2, 3, 1, 3].map((value) => hex(device.report(value, memory)));
  assert.equal(three, two);
  assert.equal(again, one);
  assert.equal(last, one);
  assert.equal(memory.seen.length, 2);
});

test("dbitflip keeps its buckets and hides moves outside them", () => {
  const device = memoized({ kind: "dbitflip", size: 50, sampled: 2, epsilon: "1" }, 3);
  const memory = new Memory(SECRET, "J");
  const reports = Array.from({ length: 50 }, (_, value) => device.report(value, memory));
  const buckets = [...reports[0].slice(0, 2)];
  assert.ok(reports.every((report) => hex(report.slice(0, 2)) === hex(Uint8Array.from(buckets))));
  assert.equal(new Set(reports.filter((_, value) => !buckets.includes(value)).map(hex)).size, 1);
  assert.ok(device.inner instanceof DBitFlip);
});

test("alpha-point rounding is unbiased", () => {
  for (let value = 0; value <= 12; value += 1) {
    const sum = [0, 1, 2, 3].reduce((total, alpha) => total + alphaRound(value, alpha, 4), 0);
    assert.equal(sum, 4 * value);
  }
});

test("layered reports differ while the permanent answer under them stays, and need coins", () => {
  const inner = { kind: "grr", size: 64, epsilon: "8" };
  const device = deviceOf({ kind: "layered", inner, first: "1", most_values: 2, step: 0, epsilon: "8" });
  const [memory, coins] = [new Memory(SECRET, "two layers"), new ReplayCoins(utf8("fresh"))];
  const reports = Array.from({ length: 40 }, () => hex(device.report(5, memory, coins)));
  assert.ok(new Set(reports).size > 10);
  const { last } = memory;
  device.report(5, memory, coins);
  assert.deepEqual(memory.last, last);
  assert.equal(memory.seen.length, 1);
  assert.ok(device.repeats);
  assert.throws(() => device.report(5, memory), /needs coins/);
});

test("the fresh layer has the published cells", () => {
  for (const [size, low, fresh] of /** @type {[number, bigint, bigint][]} */ ([
    [2, 2198905795380358826n, 3626850014342883356n],
    [4, 1775593845874822304n, 2358339603998088603n],
  ])) {
    const inner = { kind: "grr", size, epsilon: "2" };
    const spec = { kind: "layered", inner, first: "1", most_values: 2, step: 0, epsilon: "2" };
    const device = /** @type {any} */ (deviceOf(spec));
    assert.deepEqual([device.inner.low, device.freshLow], [low, fresh]);
  }
});
