import assert from "node:assert/strict";
import { test } from "node:test";

import { Device } from "../src/base.js";
import { ReplayCoins } from "../src/numbers/coins.js";
import { KINDS, deviceOf, privatizeOne } from "../src/kinds.js";
import { hex } from "../src/numbers/sha256.js";
import { all, decode, read, unhex } from "./vectors.js";

for (const [kind, name] of all()) {
  const vector = read(`${kind}/${name}`);
  test(`${kind}/${name}`, () => ("error" in vector ? assertRefused(vector) : assertReproduced(vector)));
}

function assertReproduced({ spec, digest, cases }) {
  const device = deviceOf(spec);
  assert.equal(device.digest, digest);
  assert.deepEqual(device.spec(), spec);
  for (const { value, seed, report, words } of cases) {
    const coins = new ReplayCoins(unhex(seed));
    assert.equal(hex(device.privatizeOne(decode(value), coins)), report);
    assert.equal(coins.used, words);
  }
}

function assertRefused({ spec, value, report, error }) {
  if (report !== undefined) {
    // A device makes reports and never reads them, but the spec itself must be a good one.
    assert.ok(deviceOf(spec) instanceof Device);
  } else if (value === undefined) {
    assert.throws(() => deviceOf(spec), { name: error });
  } else {
    const device = deviceOf(spec);
    assert.throws(() => device.privatizeOne(decode(value), new ReplayCoins(new Uint8Array())), { name: error });
  }
}

test("every kind has golden vectors", () => {
  const covered = new Set(all().map(([kind]) => kind));
  for (const { kind } of KINDS) assert.ok(covered.has(kind), `${kind} has no vectors`);
});

test("a small domain is answered alike with a Number and a BigInt", () => {
  const spec = { kind: "grr", size: 10, epsilon: "1" };
  const [number, big] = [7, 7n].map((value) => hex(privatizeOne(spec, value, new ReplayCoins(unhex("00")))));
  assert.equal(number, big);
});

test("reports come from the operating system unless told otherwise", () => {
  const reports = Array.from({ length: 20 }, () => hex(privatizeOne({ kind: "oue", size: 256, epsilon: "1" }, 7)));
  // Two reports of 256 noisy bits agree with probability below 2^-128.
  assert.equal(new Set(reports).size, reports.length);
});

test("a device cannot be changed once its fields were checked", () => {
  const device = deviceOf({ kind: "grr", size: 10, epsilon: "1" });
  assert.throws(() => (device.odds = 2n ** 70n), TypeError);
});

test("messages say who, what and which rule, and never the value", () => {
  assert.throws(() => deviceOf({ kind: "grr", size: 1, epsilon: "1" }), {
    message: "grr: size must be an integer from 2 to 16777216",
  });
  const device = deviceOf({ kind: "olh", size: "18446744073709551616", epsilon: "1", buckets: 4, state: "log" });
  assert.throws(() => device.privatizeOne(-987654321), (error) => {
    assert.match(error.message, /^olh: the value is outside the domain, must be an integer from 0 to 18446744073709551615$/);
    return !error.message.includes("987654321");
  });
});

test("a report on a thousand values takes at most a few milliseconds", () => {
  const spec = { kind: "oue", size: 1024, epsilon: "1" };
  for (let i = 0; i < 200; i += 1) privatizeOne(spec, i);
  const start = process.cpuUsage();
  for (let i = 0; i < 200; i += 1) privatizeOne(spec, i);
  // CPU time, which a busy machine hardly changes, and about a hundred times what it takes.
  const { user, system } = process.cpuUsage(start);
  assert.ok((user + system) / 1000 / 200 < 5);
});

test("an amplified epsilon is good inside its own padding alone", () => {
  const inner = { kind: "grr", size: 6, epsilon: { of: "1", sampled: 2 } };
  const padded = (length, part) => ({ kind: "padded", epsilon: "1", size: 6 - length, candidates: [], length, inner: part });
  const taken = /** @type {any} */ (deviceOf(padded(2, inner))).inner;
  assert.equal(taken.epsilon.sampled, 2);
  for (const part of [inner, taken]) {
    for (const spec of [
      padded(1, part),
      { kind: "set_size", epsilon: "1", size: 5, candidates: [], most: 5, inner: part },
      { kind: "memo", epsilon: "8", inner: part, most_values: 2, step: 0 },
      { kind: "rounded", epsilon: "1", top: 2, inner: part },
      { kind: "all_of", epsilon: "1", members: [part], state: "log" },
      { kind: "one_of", epsilon: "1", family: { kind: "questions", mechanisms: [part], weights: [1] }, payload_bytes: 1 },
    ]) {
      assert.throws(() => deviceOf(spec), { name: "InvalidSpec" }, spec.kind);
    }
  }
  assert.throws(() => deviceOf(inner), { name: "InvalidSpec" });
});
