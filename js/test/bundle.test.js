/**
 * The bundle does what the modules do that it was made of: short names and messages change nothing else. Skipped where
 * `make js` was not run.
 */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { ReplayCoins } from "../src/coins.js";
import * as modules from "../src/browser.js";
import { hex } from "../src/sha256.js";
import { all, decode, read, unhex } from "./vectors.js";

const path = new URL("../dist/tacit.js", import.meta.url);
const skip = !existsSync(path) && "there is no bundle";
/** @type {any} */
const bundle = skip ? {} : await import(path.href);
const [documents, domains] = [read("documents.json"), read("domains.json")];

/** Every member that the types of the package declare: a page may read it. @type {string[]} */
const declared = ["index.d.ts", "types/domains.d.ts", "types/client.d.ts"].flatMap((name) => {
  const text = readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
  return [...text.matchAll(/^  (?:abstract )?(?:readonly )?(\w+)[(:<]/gm)].map(([, member]) => member);
});

/** What a page sees of an object: declared members by type, numbers and texts by value. @param {any} object */
const surface = (object) =>
  declared.map((name) => [name, /^(number|string|bigint)$/.test(typeof object[name]) ? object[name] : typeof object[name]]);

/** The name and message of what is thrown. @param {() => unknown} act */
function refusal(act) {
  try {
    act();
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    return { name, message };
  }
  return assert.fail("nothing was refused");
}

test("the bundle exports what browser.js does", { skip }, () => {
  assert.deepEqual(Object.keys(bundle).sort(), Object.keys(modules).sort());
});

test("every golden vector is reproduced by the bundle, word for word", { skip }, () => {
  for (const [kind, name] of all().filter(([, name]) => !name.startsWith("bad_"))) {
    const { spec, digest, cases } = read(`${kind}/${name}`);
    const device = bundle.deviceOf(spec);
    assert.equal(device.digest, digest);
    assert.deepEqual(device.spec(), spec);
    assert.deepEqual(surface(device), surface(modules.deviceOf(spec)), `${kind}/${name}`);
    for (const { value, seed, report, words } of cases) {
      const coins = new ReplayCoins(unhex(seed));
      assert.equal(hex(device.privatizeOne(decode(value), coins)), report, `${kind}/${name}`);
      assert.equal(coins.used, words, `${kind}/${name}`);
    }
  }
});

test("every bad spec and value is refused by the bundle", { skip }, () => {
  for (const [kind, name] of all().filter(([, name]) => name.startsWith("bad_"))) {
    const { spec, value, report, error } = read(`${kind}/${name}`);
    if (report !== undefined) continue;
    const act = () => bundle.deviceOf(spec).privatizeOne(decode(value), new ReplayCoins(new Uint8Array()));
    assert.equal(refusal(value === undefined ? () => bundle.deviceOf(spec) : act).name, error, `${kind}/${name}`);
  }
});

test("every domain of the bundle numbers answers alike, and refuses the same", { skip }, () => {
  for (const { spec, digest, size, labels, cases } of domains.good) {
    const domain = bundle.domainOf(spec);
    assert.deepEqual([domain.spec(), domain.digest, String(domain.size)], [spec, digest, size]);
    assert.deepEqual(surface(domain), surface(modules.domainOf(spec)));
    for (const [value, index] of cases) assert.equal(String(domain.encode(value)), index);
    if (labels) assert.deepEqual(domain.allLabels(), labels);
    if (labels) assert.deepEqual(labels.map((_, index) => domain.decode(index)), labels);
  }
  for (const { spec, error } of domains.bad_specs) assert.equal(refusal(() => bundle.domainOf(spec)).name, error);
  for (const { spec, value, error } of domains.bad_values) {
    assert.equal(refusal(() => bundle.domainOf(spec).encode(value)).name, error);
  }
});

test("every document is read and answered by the bundle, and bad ones are refused", { skip }, () => {
  for (const { document, id, cases } of documents.good) {
    const collection = new bundle.Collection(document);
    assert.equal(collection.id, id);
    assert.deepEqual(surface(collection), surface(new modules.Collection(document)));
    for (const { answers, value, seed, report } of cases) {
      assert.deepEqual(collection.encode(answers), decode(value));
      assert.equal(hex(collection.mechanism.privatizeOne(decode(value), new ReplayCoins(unhex(seed)))), report);
    }
  }
  for (const { document, error, publisher } of documents.bad_documents) {
    if (!publisher) assert.equal(refusal(() => new bundle.Collection(document)).name, error);
  }
  const { document: sold } = documents.good.find(({ name }) => name === documents.bad_rows[0].document);
  for (const { row, error } of documents.bad_rows.filter(({ collector }) => !collector)) {
    assert.equal(refusal(() => new bundle.Collection(sold).checkRow(row)).name, error);
  }
});

/** A store in memory and a collector that has every document and accepts every report. */
function world() {
  const [items, uploads] = [new Map(), []];
  const storage = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => void items.set(key, value) };
  const fetch = async (url, { body }) => {
    const [, id] = /\/c\/([0-9a-f]+)/.exec(url) ?? [];
    const found = documents.good.find((one) => one.id === id)?.document;
    if (body) uploads.push(JSON.parse(body));
    const reply = body ? { accepted: 1, rejected: [], duplicate: false } : (found ?? documents.good[0].document);
    return { status: 200, headers: new Headers(), json: async () => reply };
  };
  return { items, uploads, options: { storage, fetch } };
}

/** What a respondent sends and keeps, with equal coins. @param {any} Respondent @param {any} document */
async function story(Respondent, { id, cases }) {
  const { items, uploads, options } = world();
  const coins = Object.assign(new ReplayCoins(unhex("07")), { secure: true });
  const client = new Respondent({ ...options, coins });
  const address = `https://collector.example/c/${id}`;
  const [{ answers, row }] = cases;
  const entry = await client.prepare(address, answers, { row });
  const receipt = await client.release(entry.batch);
  const again = await client.answer(address, answers).catch(({ name, receipt: first }) => ({ name, first }));
  return { entry, receipt, again, uploads, ledger: client.ledger(), kept: [...items] };
}

test("the client of the bundle sends and keeps the same", { skip }, async () => {
  for (const document of documents.good.filter(({ cases }) => cases.length)) {
    assert.deepEqual(await story(bundle.Respondent, document), await story(modules.Respondent, document));
  }
});

test("the client of the bundle does not answer a document with another digest", { skip }, async () => {
  const client = new bundle.Respondent(world().options);
  const address = `https://collector.example/c/${"f".repeat(64)}`;
  await assert.rejects(client.open(address), { name: "InvalidSpec", message: /has another digest$/ });
});

test("errors of the bundle say who and what, and leave the rule to the modules", { skip }, () => {
  const [name, device] = ["InvalidSpec", bundle.deviceOf];
  assert.deepEqual(refusal(() => device({ kind: "grr", epsilon: "1", size: 1 })), { name, message: "grr: size" });
  assert.deepEqual(refusal(() => device({ kind: "abr" })), { name, message: "abr" });
  const age = bundle.domainOf({ kind: "integers", name: "age", low: 0, high: 120, step: 1 });
  const outside = { name: "InvalidValue", message: "age: the value is outside the domain" };
  assert.deepEqual(refusal(() => age.encode(121)), outside);
});

test("no message of the bundle shows a value", { skip }, () => {
  for (const { spec, value } of domains.bad_values) {
    const { message } = refusal(() => bundle.domainOf(spec).encode(value));
    const shown = typeof value === "object" ? "[" : String(value);
    assert.ok(shown.length < 3 || !message.replace(spec.name, "").includes(shown), message);
  }
});
