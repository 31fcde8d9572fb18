import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { bitAt } from "../src/base.js";
import { InvalidSpec } from "../src/errors.js";
import { isPrime, paley, primeFactors, primitivePolynomial, singer } from "../src/numbers/designs.js";

const vectors = JSON.parse(readFileSync(new URL("../../spec/vectors/designs.json", import.meta.url), "utf8"));

/** @param {import("../src/numbers/designs.js").Cyclic} design */
function points(design) {
  return Array.from({ length: design.modulus }, (_, i) => i).filter((i) => bitAt(design.block, i));
}

/** How many points the block shares with each of its shifts: all pairs of points, over all shifts but the first. */
const sharedOf = ({ modulus, k }) => (k * (k - 1)) / (modulus - 1);

/** @param {import("../src/numbers/designs.js").Cyclic} design */
function assertIsDifferenceSet(design) {
  const block = points(design);
  assert.equal(block.length, design.k);
  const overlaps = new Array(design.modulus).fill(0);
  for (const a of block) for (const b of block) overlaps[(a - b + design.modulus) % design.modulus] += 1;
  assert.deepEqual(overlaps, [design.k, ...new Array(design.modulus - 1).fill(sharedOf(design))]);
}

test("small Singer designs have the published points", () => {
  assert.deepEqual(points(singer(3, 3)), [0, 1, 3, 9]);
  assert.deepEqual(points(singer(2, 4)), [0, 1, 2, 4, 5, 8, 10]);
  assert.deepEqual(points(singer(5, 3)), [0, 1, 3, 8, 12, 18]);
  assert.deepEqual(points(singer(7, 3)), [0, 1, 3, 13, 32, 36, 43, 52]);
});

test("a Paley design is the non-zero squares", () => {
  assert.deepEqual(points(paley(11)), [1, 3, 4, 5, 9]);
});

test("small designs are difference sets", () => {
  for (const [q, t] of [[2, 3], [2, 8], [3, 5], [4, 3], [4, 4], [8, 3], [9, 3], [16, 3], [25, 3]]) {
    assertIsDifferenceSet(singer(q, t));
  }
  for (const m of [7, 11, 263]) assertIsDifferenceSet(paley(m));
});

for (const { coefficients, sha256, family, q, t, ...numbers } of vectors.designs) {
  test(`${family}(${q}, ${t}) is the golden vector`, () => {
    const { block, ...built } = family === "paley" ? paley(q) : singer(q, t);
    assert.deepEqual({ ...built, lambda: sharedOf(built) }, numbers);
    assert.equal(createHash("sha256").update(block).digest("hex"), sha256);
    if (coefficients) {
      const [p] = primeFactors(q);
      assert.deepEqual(primitivePolynomial(p, coefficients.length, q), coefficients);
    }
  });
}

test("no prime is skipped by the next primes of the golden vector", () => {
  for (const { from, prime } of vectors.next_prime) {
    assert.ok(isPrime(prime));
    for (let n = from; n < prime; n += 1) assert.ok(!isPrime(n));
  }
  assert.deepEqual([0, 1, 2, 3, 4, 9, 25, 97].map(isPrime), [false, false, true, true, false, false, false, true]);
});

test("designs that cannot exist are refused", () => {
  for (const [q, t] of [[6, 3], [1, 3], [0, 3], [3, 2], [2, 40], [2, 1e12], [8209, 3], [2.5, 3], [NaN, 3], [2, Infinity]]) {
    assert.throws(() => singer(q, t), InvalidSpec);
  }
  for (const m of [2, 5, 13, 15, 27, NaN, 2 ** 31 - 1]) assert.throws(() => paley(m), InvalidSpec);
});
