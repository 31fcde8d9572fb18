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

test("bad answers are refused and never shown", () => {
  for (const { document: wanted, answers, error } of vectors.bad_answers) {
    const { document } = vectors.good.find(({ name }) => name === wanted);
    assert.throws(() => new Collection(document).encode(answers), (caught) => {
      return caught.name === error && !/maybe|121/.test(caught.message);
    });
  }
});
