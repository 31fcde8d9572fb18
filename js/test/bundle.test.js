/** The bundle makes the same reports as the modules it was made of. Skipped where `make js` was not run. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";

import { ReplayCoins } from "../src/coins.js";
import { hex } from "../src/sha256.js";
import { all, decode, read, unhex } from "./vectors.js";

const path = new URL("../dist/tacit.js", import.meta.url);
const skip = !existsSync(path) && "there is no bundle";

test("every golden vector is reproduced by the bundle", { skip }, async () => {
  const { deviceOf } = await import(path.href);
  for (const [kind, name] of all().filter(([, name]) => !name.startsWith("bad_"))) {
    const { spec, digest, cases } = read(`${kind}/${name}`);
    const device = deviceOf(spec);
    assert.equal(device.digest, digest);
    for (const { value, seed, report } of cases) {
      assert.equal(hex(device.privatizeOne(decode(value), new ReplayCoins(unhex(seed)))), report, `${kind}/${name}`);
    }
  }
});

test("every bad spec is refused by the bundle", { skip }, async () => {
  const { deviceOf, InvalidSpec } = await import(path.href);
  for (const [kind, name] of all().filter(([, name]) => name.startsWith("bad_"))) {
    const { spec, value, report } = read(`${kind}/${name}`);
    if (value === undefined && report === undefined) assert.throws(() => deviceOf(spec), InvalidSpec, `${kind}/${name}`);
  }
});

test("every document is read by the bundle", { skip }, async () => {
  const { Collection } = await import(path.href);
  for (const { document, id } of read("documents.json").good) assert.equal(new Collection(document).id, id);
});

test("errors of the bundle say who and what, and leave the rule to the modules", { skip }, async () => {
  const { deviceOf, domainOf, InvalidSpec, InvalidValue } = await import(path.href);
  const message = (/** @type {() => unknown} */ act, /** @type {any} */ type) => {
    let found;
    assert.throws(act, (error) => {
      found = error.message;
      return error instanceof type;
    });
    return found;
  };
  assert.equal(message(() => deviceOf({ kind: "grr", epsilon: "1", size: 1 }), InvalidSpec), "grr: size");
  const age = domainOf({ kind: "integers", name: "age", low: 0, high: 120, step: 1 });
  assert.equal(message(() => age.encode(121), InvalidValue), "age: the value is outside the domain");
});
