import assert from "node:assert/strict";
import { test } from "node:test";

import { DBitFlip } from "../src/bit_flip.js";
import { deviceOf } from "../src/kinds.js";
import { alphaRound } from "../src/mean.js";
import { MemoCoins, Memory } from "../src/memo.js";
import { hex, utf8 } from "../src/sha256.js";

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
