/** What the client does with entropy that is broken, and that it never looks for another source. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { SystemCoins } from "../src/numbers/coins.js";
import { deviceOf } from "../src/kinds.js";
import "./vectors.js";

const SOURCES = new URL("../src/", import.meta.url);
const SPECS = [
  { kind: "grr", size: 5, epsilon: "1" },
  { kind: "oue", size: 70, epsilon: "1" },
  { kind: "olh", size: 100, epsilon: "1", buckets: 4, state: "counts" },
  { kind: "hrr", size: 100, epsilon: "1", skip_zero: true },
  { kind: "ss", size: 10, epsilon: "1", subset: 3 },
];

/** Run with another `crypto.getRandomValues`. @param {(block: Uint32Array) => Uint32Array} draw @param {() => void} run */
function withEntropy(draw, run) {
  const saved = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: { getRandomValues: draw }, configurable: true });
  try {
    run();
  } finally {
    Object.defineProperty(globalThis, "crypto", /** @type {PropertyDescriptor} */ (saved));
  }
}

let ticks = 0;
const BROKEN = {
  "all zero": (/** @type {Uint32Array} */ block) => block.fill(0),
  "all one": (/** @type {Uint32Array} */ block) => block.fill(0xffffffff),
  "a counter": (/** @type {Uint32Array} */ block) => block.map(() => (ticks += 1)),
};

for (const [name, draw] of Object.entries(BROKEN)) {
  test(`entropy that is ${name} gives reports of the right width, and never hangs`, () => {
    for (const spec of SPECS) {
      const width = deviceOf(spec).privatizeOne(0, new SystemCoins()).length;
      withEntropy(draw, () => {
        for (const value of [0, 1, 4]) {
          assert.equal(deviceOf(spec).privatizeOne(value, new SystemCoins()).length, width, spec.kind);
        }
      });
    }
  });
}

test("entropy that throws lets no report out", () => {
  const refuse = () => {
    throw new Error("no entropy");
  };
  for (const spec of SPECS) {
    withEntropy(refuse, () => assert.throws(() => deviceOf(spec).privatizeOne(0, new SystemCoins()), /no entropy/));
  }
});

test("no source falls back to Math.random, and the clock is read by the client and by windows alone", () => {
  const timed = new Set(["client/client.js", "sealed/sealing.js", "sealed/session.js", "client/ledger.js", "sealed/upload.js", "client/ticks.js", "documents/windows.js"]);
  for (const name of readdirSync(SOURCES, { encoding: "utf8", recursive: true }).filter((file) => file.endsWith(".js"))) {
    const text = readFileSync(new URL(name, SOURCES), "utf8");
    assert.ok(!text.includes("Math.random"), name);
    assert.ok(timed.has(name) || !/\bDate\b|performance\.now/.test(text), name);
  }
});
