/** Laws of the canonical form over random documents; the golden vectors are in foundations.test.js. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { canonical, digest } from "../src/numbers/canonical.js";
import { ReplayCoins } from "../src/numbers/coins.js";
import { InvalidSpec } from "../src/errors.js";
import { utf8 } from "../src/numbers/sha256.js";

const TEXTS = ["", "a", "Zürich", "\u0000\u001f\"\\/", "日本", "😀", "\u2028", "</script>"];
const KEYS = ["a", "b", "kind", "size_of", "_", "z_z"];

/** A random document without repeated keys. @param {ReplayCoins} coins @param {number} depth @returns {any} */
function document(coins, depth = 0) {
  const sort = coins.uniform(depth < 4 ? 6 : 4);
  if (sort === 0) return [null, true, false][coins.uniform(3)];
  if (sort === 1) return coins.uniform(2 ** 53) * (coins.uniform(2) ? 1 : -1);
  if (sort === 2) return TEXTS[coins.uniform(TEXTS.length)];
  if (sort === 3) return coins.uniform(10);
  const items = Array.from({ length: coins.uniform(5) }, () => document(coins, depth + 1));
  return sort === 4 ? items : Object.fromEntries(items.map((item, i) => [KEYS[i], item]));
}

/** The same document with every object written in the opposite order. @param {any} value @returns {any} */
function reversed(value) {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).reverse().map(([key, item]) => [key, reversed(item)]));
}

const documents = Array.from({ length: 500 }, (_, i) => document(new ReplayCoins(utf8(`document ${i}`))));

test("the canonical form is JSON of the same document, and its own canonical form", () => {
  for (const one of documents) {
    // Negative zero has no spelling of its own in the canonical form.
    assert.deepEqual(JSON.parse(canonical(one)), JSON.parse(JSON.stringify(one)));
    assert.equal(canonical(JSON.parse(canonical(one))), canonical(one));
  }
});

test("the order of keys does not matter, every other difference does", () => {
  const forms = new Map();
  for (const one of documents) {
    assert.equal(digest(reversed(one)), digest(one));
    forms.set(digest(one), canonical(one));
  }
  assert.equal(forms.size, new Set(documents.map((one) => canonical(one))).size);
});

test("one bad part anywhere refuses the document, and the message names its place", () => {
  for (const bad of [0.5, 2 ** 53, "e\u0301", "\ud800", 5n, undefined, { A: 1 }]) {
    assert.throws(() => canonical({ a: [1, { b: bad }] }), (error) => {
      return error instanceof InvalidSpec && error.message.startsWith("$.a[1].b: ");
    });
  }
});
