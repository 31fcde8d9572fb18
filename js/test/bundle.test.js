/**
 * The bundle, which is what the collector serves and the wheel carries, does what the modules do that it was made of.
 * Skipped where `make js` was not run.
 */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

import { ReplayCoins } from "../src/numbers/coins.js";
import * as modules from "../src/browser.js";
import { deviceOf } from "../src/kinds.js";
import { KNOWN } from "../src/load.js";
import { hex } from "../src/numbers/sha256.js";
import { Shuffle } from "./shufflers.js";
import { all, decode, read, unhex, uploaded } from "./vectors.js";

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

test("the bundle exports what browser.js does, and beside it what its kinds need", { skip }, () => {
  for (const name of Object.keys(modules)) assert.equal(typeof bundle[name], typeof modules[name], name);
});

test("the base has no kind in it, and loads those of a document alone", { skip }, async () => {
  assert.ok(!Object.values(bundle).some((one) => Object.hasOwn(one, "kind") && KNOWN.includes(one.kind)));
  const device = await bundle.loadDevice({ kind: "memo", epsilon: "1", inner: { kind: "grr", epsilon: "1", size: 3 }, most_values: 2, step: 0 });
  assert.deepEqual([device.kind, device.inner.kind], ["memo", "grr"]);
});

test("every golden vector is reproduced by the bundle, word for word", { skip }, async () => {
  for (const [kind, name] of all().filter(([, name]) => !name.startsWith("bad_"))) {
    const { spec, digest, cases } = read(`${kind}/${name}`);
    const device = await bundle.loadDevice(spec);
    assert.equal(device.digest, digest);
    assert.deepEqual(device.spec(), spec);
    assert.deepEqual(surface(device), surface(deviceOf(spec)), `${kind}/${name}`);
    for (const { value, seed, report, words } of cases) {
      const coins = new ReplayCoins(unhex(seed));
      assert.equal(hex(device.privatizeOne(decode(value), coins)), report, `${kind}/${name}`);
      assert.equal(coins.used, words, `${kind}/${name}`);
    }
  }
});

test("every bad spec and value is refused by the bundle, in the same words", { skip }, async () => {
  for (const [kind, name] of all().filter(([, name]) => name.startsWith("bad_"))) {
    const { spec, value, report, error } = read(`${kind}/${name}`);
    if (report !== undefined) continue;
    if (value === undefined) {
      await assert.rejects(bundle.loadDevice(spec), { name: error }, `${kind}/${name}`);
      continue;
    }
    const [device, twin] = [await bundle.loadDevice(spec), deviceOf(spec)];
    const act = (one) => refusal(() => one.privatizeOne(decode(value), new ReplayCoins(new Uint8Array())));
    assert.deepEqual(act(device), act(twin));
    assert.equal(act(device).name, error, `${kind}/${name}`);
  }
});

test("a module of another build is refused, and so is one that is not there", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tacit-"));
  const files = readdirSync(new URL("./", path)).filter((name) => name.endsWith(".js"));
  for (const name of files) {
    const code = readFileSync(new URL(name, path), "utf8");
    const other = name === "tacit-unary.js" ? code.replace(/"[0-9a-f]{16}"/, '"another"') : code;
    if (name !== "tacit-blocks.js") writeFileSync(join(folder, name), other);
  }
  const mixed = await import(pathToFileURL(join(folder, "tacit.js")).href);
  await assert.rejects(mixed.loadDevice({ kind: "oue", epsilon: "1", size: 2 }), { name: "TacitError", message: /another version/ });
  await assert.rejects(mixed.loadDevice({ kind: "ss", epsilon: "1", size: 4, subset: 1 }), { name: "TacitError", message: /cannot be loaded/ });
  assert.equal((await mixed.loadDevice({ kind: "grr", epsilon: "1", size: 2 })).kind, "grr");
  rmSync(folder, { recursive: true });
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

test("every document is read and answered by the bundle, and bad ones are refused", { skip }, async () => {
  for (const { document, id, cases } of documents.good) {
    const collection = await bundle.Collection.read(JSON.stringify(document));
    assert.equal(collection.id, id);
    assert.deepEqual(surface(collection), surface(await modules.Collection.read(document)));
    for (const { answers, value, seed, report } of cases) {
      assert.deepEqual(collection.encode(answers), decode(value));
      assert.equal(hex(collection.mechanism.privatizeOne(decode(value), new ReplayCoins(unhex(seed)))), report);
    }
  }
  for (const { document, error } of documents.bad_documents) {
    await assert.rejects(bundle.Collection.read(document), { name: error });
  }
  for (const { text, error } of documents.bad_texts) await assert.rejects(bundle.Collection.read(text), { name: error });
  const { document: sold } = documents.good.find(({ name }) => name === documents.bad_rows[0].document);
  const collection = await bundle.Collection.read(sold);
  for (const { row, error } of documents.bad_rows.filter(({ collector }) => !collector)) {
    assert.equal(refusal(() => collection.checkRow(row)).name, error);
  }
});

/** A store in memory and a collector that has every document and accepts every report. */
function world() {
  const [items, uploads] = [new Map(), []];
  const storage = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => void items.set(key, value) };
  const fetch = async (url, { body }) => {
    const [, id] = /\/c\/([0-9a-f]+)/.exec(url) ?? [];
    const found = documents.good.find((one) => one.id === id)?.document;
    if (body) uploads.push(uploaded(body));
    const reply = body ? { accepted: 1, rejected: [], duplicate: false } : (found ?? documents.good[0].document);
    return new Response(JSON.stringify(reply));
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
  // Tokens need an issuer, which tokens.test.js has.
  const isPlain = ({ cases, document: { shuffle, windows, tokens } }) => cases.length && !shuffle && !windows && !tokens;
  for (const document of documents.good.filter(isPlain)) {
    assert.deepEqual(await story(bundle.Respondent, document), await story(modules.Respondent, document));
  }
});

test("the client of the bundle does not answer a shuffled document in the clear", { skip }, async () => {
  const { id, cases: [{ answers }] } = documents.good.find(({ document: { shuffle } }) => shuffle);
  const { uploads, options } = world();
  const answering = new bundle.Respondent(options).answer(`https://collector.example/c/${id}`, answers);
  await assert.rejects(answering, { name: "ProtocolViolation" });
  assert.deepEqual(uploads, []);
});

test("the client of the bundle seals as the modules do, by a module of its own", { skip }, async () => {
  for (const terms of [{}, { relay: true }, { mode: "ss" }]) {
    const shuffle = await Shuffle.start(terms);
    const told = await Promise.all([bundle.Respondent, modules.Respondent].map(async (Respondent) => {
      const { items, options: { storage } } = world();
      const coins = Object.assign(new ReplayCoins(unhex("07")), { secure: true });
      const receipt = await new Respondent({ storage, coins }).answer(shuffle.address, { colour: "red" });
      return { receipt, kept: [...items] };
    }));
    assert.deepEqual(told[0], told[1]);
    assert.equal(told[0].receipt.state, "sent");
    await shuffle.stop();
  }
});

test("the base and the module that seals are as small as they are meant to be", { skip }, () => {
  const size = (/** @type {string} */ name) => gzipSync(readFileSync(new URL(name, path)), { level: 9 }).length;
  assert.ok(size("tacit.js") < 15_000, `tacit.js has ${size("tacit.js")} bytes`);
  assert.ok(size("tacit-sealing.js") < 10_000, `tacit-sealing.js has ${size("tacit-sealing.js")} bytes`);
});

test("the client of the bundle does not answer a document with another digest", { skip }, async () => {
  const client = new bundle.Respondent(world().options);
  const address = `https://collector.example/c/${"f".repeat(64)}`;
  await assert.rejects(client.open(address), { name: "InvalidSpec", message: /has another digest/ });
});

test("messages about values are those of the modules, which never show one", { skip }, () => {
  for (const { spec, value } of domains.bad_values) {
    const [said, meant] = [bundle, modules].map((one) => refusal(() => one.domainOf(spec).encode(value)));
    assert.deepEqual(said, meant);
  }
});
