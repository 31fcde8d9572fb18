import assert from "node:assert/strict";
import { test } from "node:test";

import { DOMAINS, Product, domainOf, project } from "../src/domains/product.js";
import { read } from "./vectors.js";

const vectors = read("domains.json");

for (const { spec, digest, size, labels, cases } of vectors.good) {
  test(`${spec.kind} ${spec.name ?? ""}: answers have the published indices`, () => {
    const domain = domainOf(spec);
    assert.deepEqual(domain.spec(), spec);
    assert.equal(domain.digest, digest);
    assert.equal(String(domain.size), size);
    assert.deepEqual(cases.map(([value]) => String(domain.encode(value))), cases.map(([, index]) => index));
    if (labels) {
      assert.deepEqual(domain.allLabels(), labels);
      assert.deepEqual(labels.map((_, index) => domain.decode(index)), labels);
    }
  });
}

test("refused values get the published message", () => {
  for (const { spec, value, error, message } of vectors.bad_values) {
    assert.throws(() => domainOf(spec).encode(value), { name: error, message });
  }
});

test("refused specs get the published message", () => {
  for (const { spec, error, message } of vectors.bad_specs) {
    assert.throws(() => domainOf(spec), { name: error, message });
  }
});

test("every kind of domain is covered", () => {
  assert.deepEqual(new Set(vectors.good.map(({ spec }) => spec.kind)), new Set(DOMAINS.map(({ kind }) => kind)));
});

test("a projection keeps the named order, and indices stay small where they can", () => {
  const table = domainOf(vectors.good.find(({ spec }) => spec.kind === "product").spec);
  assert.ok(table instanceof Product);
  const pair = project(table, ["mood", "smoker"]);
  assert.deepEqual(pair.names, ["mood", "smoker"]);
  assert.equal(pair.encode({ smoker: true, mood: "fair", year: 0 }), 3);
  assert.throws(() => project(table, ["age"]), { name: "InvalidSpec" });
  assert.throws(() => pair.decode(6), { name: "InvalidValue" });
});

test("numbers that JSON cannot write are refused without being shown", () => {
  const year = domainOf({ kind: "integers", name: "year", low: 0, high: 9, step: 1 });
  for (const value of [NaN, Infinity, -Infinity, undefined, Symbol("x"), new Date(0)]) {
    assert.throws(() => year.encode(value), { message: /^year: the value is outside the domain, must be/ });
  }
  assert.equal(year.encode(7n), 7);
});
