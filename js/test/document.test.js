import assert from "node:assert/strict";
import { test } from "node:test";

import { ReplayCoins } from "../src/coins.js";
import { Collection } from "../src/document.js";
import { hex } from "../src/sha256.js";
import { decode, read, unhex } from "./vectors.js";

const vectors = read("documents.json");

for (const { name, document, id, cases } of vectors.good) {
  test(`document, ${name}: id, values and reports are the published ones`, () => {
    const collection = new Collection(document);
    assert.equal(collection.id, id);
    for (const { answers, value, seed, report } of cases) {
      const encoded = collection.encode(answers);
      assert.deepEqual(encoded, decode(value));
      assert.equal(hex(collection.mechanism.privatizeOne(encoded, new ReplayCoins(unhex(seed)))), report);
    }
  });
}

for (const { name, document, error, publisher } of vectors.bad_documents) {
  if (!publisher) test(`bad document: ${name}`, () => assert.throws(() => new Collection(document), { name: error }));
}

/** @param {string} wanted */
const named = (wanted) => new Collection(vectors.good.find(({ name }) => name === wanted).document);

test("a row is completed with nulls, in the order of the columns", () => {
  const sold = vectors.good.filter(({ document }) => document.rows);
  assert.ok(sold.length > 2);
  for (const { document, cases } of sold) {
    for (const { row, batch_json: { reports } } of cases) {
      assert.equal(JSON.stringify(new Collection(document).checkRow(row)), JSON.stringify(reports[0].row));
    }
  }
});

test("bad rows are refused, and no message shows what they hold", () => {
  for (const { document, row, error, collector } of vectors.bad_rows.filter((one) => !one.collector)) {
    assert.ok(!collector);
    assert.throws(() => named(document).checkRow(row), (caught) => {
      return caught.name === error && caught.message.startsWith("row") && !/maybe|121|31\.12|red/.test(caught.message);
    });
  }
  const inherited = Object.create({ city: "Utrecht" });
  assert.equal(named("rows").checkRow(inherited)?.city, null);
});

test("a collection without public columns takes no row along", () => {
  const plain = named("one question");
  for (const nothing of [undefined, null, {}]) assert.equal(plain.checkRow(nothing), null);
  for (const row of [{ city: "x" }, "x", [1]]) assert.throws(() => plain.checkRow(row), { name: "InvalidValue" });
});

test("questions that are asked together have one mechanism", () => {
  const { mechanism, members, policy } = named("views together");
  assert.deepEqual([policy, members], ["joint", [mechanism]]);
  assert.equal(named("a grid together").encode({ colour: "café", smoker: true, years: 3 }), (1 * 2 + 1) * 5 + 3);
});

test("bad answers are refused and never shown", () => {
  for (const { document: wanted, answers, error } of vectors.bad_answers) {
    const { document } = vectors.good.find(({ name }) => name === wanted);
    assert.throws(() => new Collection(document).encode(answers), (caught) => {
      return caught.name === error && !/maybe|121/.test(caught.message);
    });
  }
});
