import assert from "node:assert/strict";
import { test } from "node:test";

import { ReplayCoins } from "../src/numbers/coins.js";
import { Collection } from "../src/documents/document.js";
import { KINDS } from "../src/kinds.js";
import { hex } from "../src/numbers/sha256.js";
import { decode, read, unhex } from "./vectors.js";

const vectors = read("documents.json");

for (const { name, document, id, cases } of vectors.good) {
  test(`document, ${name}: id, values and reports are the published ones`, async () => {
    const collection = await Collection.read(document);
    assert.equal(collection.id, id);
    for (const { answers, value, seed, report } of cases) {
      const encoded = collection.encode(answers);
      assert.deepEqual(encoded, decode(value));
      assert.equal(hex(collection.mechanism.privatizeOne(encoded, new ReplayCoins(unhex(seed)))), report);
    }
  });
}

for (const { name, document, error } of vectors.bad_documents) {
  test(`bad document: ${name}`, () => assert.rejects(Collection.read(document), { name: error }));
}

for (const { name, text, error } of vectors.bad_texts) {
  test(`bad text: ${name}`, () => assert.rejects(Collection.read(text), { name: error }));
}

test("the text of a document is read as the document", async () => {
  const [{ document, id }] = vectors.good;
  assert.equal((await Collection.read(JSON.stringify(document, null, 2))).id, id);
  const spoken = { ...document, title: { en: 'Is "1.5" or 1e3 more?\\' } };
  assert.equal((await Collection.read(JSON.stringify(spoken))).title.en, spoken.title.en);
});

test("the constructor takes the kinds that a document may use", () => {
  const [{ document, id }] = vectors.good;
  assert.equal(new Collection(document, KINDS).id, id);
  assert.throws(() => new Collection(document, []), { name: "InvalidSpec" });
  const timed = vectors.good.find(({ name }) => name === "windows of a day").document;
  assert.throws(() => new Collection(timed, KINDS), /Collection.read/);
});

/** @param {string} wanted */
const named = (wanted) => Collection.read(vectors.good.find(({ name }) => name === wanted).document);

test("a row is completed with nulls, in the order of the columns", async () => {
  const sold = vectors.good.filter(({ document }) => document.rows);
  assert.ok(sold.length > 2);
  for (const { document, cases } of sold) {
    for (const { row, batch_json: { reports } } of cases) {
      assert.equal(JSON.stringify((await Collection.read(document)).checkRow(row)), JSON.stringify(reports[0].row));
    }
  }
});

test("bad rows are refused, and no message shows what they hold", async () => {
  for (const { document, row, error, collector } of vectors.bad_rows.filter((one) => !one.collector)) {
    assert.ok(!collector);
    const collection = await named(document);
    assert.throws(() => collection.checkRow(row), (caught) => {
      return caught.name === error && caught.message.startsWith("row") && !/maybe|121|31\.12|red/.test(caught.message);
    });
  }
  const inherited = Object.create({ city: "Utrecht" });
  assert.equal((await named("rows")).checkRow(inherited)?.city, null);
});

test("a collection without public columns takes no row along", async () => {
  const plain = await named("one question");
  for (const nothing of [undefined, null, {}]) assert.equal(plain.checkRow(nothing), null);
  for (const row of [{ city: "x" }, "x", [1]]) assert.throws(() => plain.checkRow(row), { name: "InvalidValue" });
});

test("questions that are asked together have one mechanism", async () => {
  const { mechanism, members, policy } = await named("views together");
  assert.deepEqual([policy, members], ["joint", [mechanism]]);
  assert.equal((await named("a grid together")).encode({ colour: "café", smoker: true, years: 3 }), (1 * 2 + 1) * 5 + 3);
});

test("bad answers are refused and never shown", async () => {
  for (const { document: wanted, answers, error } of vectors.bad_answers) {
    const collection = await named(wanted);
    assert.throws(() => collection.encode(answers), (caught) => {
      return caught.name === error && !/maybe|121/.test(caught.message);
    });
  }
});

const shuffled = vectors.good.filter(({ document }) => document.shuffle);

test("a document has the fields of its version, and says whether it is shuffled", async () => {
  assert.ok(shuffled.length > 5);
  for (const { document } of vectors.good) {
    const collection = await Collection.read(document);
    assert.deepEqual([collection.version, collection.shuffle], [document.version, document.shuffle ?? null]);
  }
  const apart = await Promise.all(["nine shufflers", "a collector that is its shuffler", "one question"].map(named));
  assert.deepEqual(apart.map(({ rolesApart }) => rolesApart), [true, false, false]);
});

test("what is not as it must be is refused with the reason", async () => {
  const [{ document }] = shuffled;
  for (const [change, message] of [
    [{ windows: {}, account: {}, shuffle: null }, /document.windows/],
    [{ account: {} }, /account must be null without windows/],
    [{ version: 4 }, /version must be 1 to 3; a newer document needs a newer script/],
    [{ mechanism: { kind: "oue", epsilon: "1", size: 3 } }, /fit the 64-bit word/],
  ]) {
    await assert.rejects(Collection.read({ ...document, ...change }), { name: "InvalidSpec", message });
  }
});

test("the kinds that fit a word are those that say so", () => {
  assert.deepEqual(KINDS.filter(({ prototype }) => prototype.fitsWord).map(({ kind }) => kind), ["grr", "olh"]);
});
