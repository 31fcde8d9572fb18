import assert from "node:assert/strict";
import { createServer } from "node:http";
import { afterEach, beforeEach, test } from "node:test";

import { digest } from "../src/numbers/canonical.js";
import { Respondent, batchOf } from "../src/client/client.js";
import { ReplayCoins, ScriptedCoins, SystemCoins } from "../src/numbers/coins.js";
import { Collection } from "../src/documents/document.js";
import { deviceOf } from "../src/kinds.js";
import { Ledger } from "../src/client/ledger.js";
import { read, unhex, uploaded } from "./vectors.js";

const vectors = read("documents.json");
/** @param {string} wanted */
const vector = (wanted) => vectors.good.find(({ name }) => name === wanted);

/** A storage that outlives respondents, as a browser's does. */
class Storage {
  items = new Map();
  getItem = (key) => this.items.get(key) ?? null;
  setItem = (key, value) => void this.items.set(key, value);
  get text() {
    return [...this.items.values()].join();
  }
}

const RECEIPT = { accepted: 1, rejected: [], duplicate: false };
let server;
let base;
let uploads;
let replies;
let storage;
let waits;
/** What is served in the place of a document that no vector has. */
let foreign;

/** A collector in miniature: documents by id, and scripted replies to uploads (then receipts). */
beforeEach(async () => {
  [uploads, replies, storage, waits, foreign] = [[], [], new Storage(), [], undefined];
  server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const [, , id, what] = request.url.split("/");
      if (what === "document.json") return reply(response, document(id));
      if (what === "session.json") return reply(response, [404, { title: "not found" }]);
      uploads.push({ body: Buffer.concat(chunks), headers: request.headers, id });
      const next = replies.shift() ?? [201, RECEIPT];
      if (next === "drop") return response.destroy();
      reply(response, next);
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  base = `http://127.0.0.1:${server.address().port}`;
});

afterEach(() => {
  server.closeAllConnections?.();
  return new Promise((closed) => server.close(closed));
});

const document = (id) => {
  if (id === "f".repeat(64)) return [200, vectors.good[0].document];
  const found = vectors.good.find((one) => one.id === id);
  if (!found && foreign) return [200, foreign];
  return found ? [200, found.document] : [404, { title: "not found" }];
};

function reply(response, [status, body, headers = {}]) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
}

const respondent = (options = {}) =>
  new Respondent({ storage, sleep: async (wait) => void waits.push(wait), attempts: 4, ...options });
const address = (name) => `${base}/c/${vector(name).id}`;
const ONE = "one question";

test("a batch is the binary one of the vectors, or its twin where a row goes along", () => {
  const cases = vectors.good.filter(({ document: { shuffle, windows } }) => !shuffle && !windows).flatMap((one) => one.cases);
  for (const { batch: binary, batch_json: twin } of cases) {
    const { collection, batch, reports: [{ member, report, row }] } = twin;
    const body = batchOf({ collection, batch, member, report, row });
    if (row) assert.deepEqual(JSON.parse(body), twin);
    else assert.deepEqual(body, unhex(binary));
  }
  assert.ok(cases.some(({ batch_json: { reports: [{ member, row }] } }) => member > 0 && !row));
});

test("an answer arrives as a batch, and the ledger keeps noise alone", async () => {
  const client = respondent();
  const receipt = await client.answer(address(ONE), { colour: "red" });
  assert.equal(receipt.state, "sent");
  const [{ body, headers, id }] = uploads;
  const sent = uploaded(body);
  assert.equal(headers["content-type"], "text/plain");
  assert.equal(headers.cookie, undefined);
  assert.equal(id, vector(ONE).id);
  assert.deepEqual(Object.keys(sent), ["collection", "batch", "reports"]);
  assert.match(sent.batch, /^[0-9a-f]{32}$/);
  assert.deepEqual(sent.reports.map(({ member, report }) => [member, report.length]), [[0, 2]]);
  assert.ok(!storage.text.includes("red"));
  assert.deepEqual(client.ledger().total, 1);
  assert.deepEqual(client.ledger().collections.map(({ epsilon, title }) => [epsilon, title.en]), [[1, "A title"]]);
});

test("a member of one_of is stated beside its padded report", async () => {
  for (let i = 0; i < 8; i += 1) {
    await respondent({ storage: new Storage() }).answer(address("one of three"), { colour: "red", age: 4, smoker: true });
  }
  const reports = uploads.flatMap(({ body }) => uploaded(body).reports);
  assert.ok(reports.every(({ member, report }) => member < 3 && report.length === 8));
});

test("a member beyond 16 bits is stated whole", () => {
  const mechanisms = [{ kind: "grr", epsilon: "1", size: 2 }];
  const family = { kind: "coefficients", sizes: [2 ** 17], k: 1, by_order: [1], mechanisms };
  const mechanism = deviceOf({ kind: "one_of", epsilon: "1", family, payload_bytes: 1 });
  const given = { id: "0", planId: "0", title: {}, epsilon: "1", mechanism };
  const collection = { ...given, encode: (answers) => answers, checkRow: () => null };
  const [wanted, members] = [100_000n, 2n ** 17n - 1n];
  const coins = new ScriptedCoins([((wanted << 64n) + members - 1n) / members, 0n, 0n, 0n]);
  const { member, report } = new Ledger(storage).record(collection, [5], { coins, base });
  assert.deepEqual([member, report.length], [Number(wanted), 2]);
});

test("a row goes along with the report, complete, and is kept with it; nothing else has one", async () => {
  const [{ answers, row, batch_json: { reports } }] = vector("rows").cases;
  const entry = await respondent().prepare(address("rows"), answers, { row });
  assert.deepEqual(entry.row, reports[0].row);
  await respondent().release(entry.batch);
  const other = respondent({ storage: new Storage() });
  assert.equal((await other.answer(address("rows"), answers)).state, "sent");
  await respondent().answer(address(ONE), { colour: "red" });
  const sent = uploads.map(({ body }) => uploaded(body).reports[0]);
  const [without] = vector("rows").cases[1].batch_json.reports;
  assert.deepEqual(sent.map((one) => one.row), [reports[0].row, without.row, undefined]);
  assert.deepEqual(Object.keys(sent[2]), ["member", "report"]);
});

test("a wrong row is refused before anything is drawn", async () => {
  for (const row of [{ price: 1 }, { items: 1.5 }, "row"]) {
    await assert.rejects(respondent().answer(address("rows"), { colour: "red" }, { row }), { name: "InvalidValue" });
  }
  const row = { city: "x" };
  await assert.rejects(respondent().answer(address(ONE), { colour: "red" }, { row }), { name: "InvalidValue" });
  assert.deepEqual([uploads, storage.text], [[], ""]);
});

const shuffled = vectors.good.filter(({ document: { shuffle } }) => shuffle);

test("a report that must be sealed is neither drawn nor sent in the clear", async () => {
  assert.ok(shuffled.length > 5);
  for (const { id, document: given, cases: [{ answers }] } of shuffled) {
    const collection = await Collection.read(given);
    for (const [act, options] of [["answer", {}], ["prepare", {}], ["answer", { collection }], ["prepare", { collection }]]) {
      const acting = respondent()[act](`${base}/c/${id}`, answers, options);
      const known = given.shuffle.mode !== "peos-dgk";
      await assert.rejects(acting, known ? { name: "TacitError", message: /no session takes reports now/ } : { name: "CannotSeal" });
    }
  }
  assert.deepEqual([await respondent().flush(), uploads, storage.text], [[], [], ""]);
});

test("a ledger charges the local epsilon, whatever is claimed of shufflers", async () => {
  for (const { document: given, cases: [{ answers }] } of shuffled) {
    const ledger = new Ledger(new Storage());
    const collection = await Collection.read(given);
    ledger.record(collection, answers, { coins: new SystemCoins(), base });
    assert.deepEqual([ledger.spent().total, collection.mechanism.epsilon], [1, "1"]);
  }
});

test("a report of a ledger from before there were rows is sent as it is", async () => {
  replies = Array(4).fill("drop");
  await respondent().answer(address(ONE), { colour: "red" });
  const kept = JSON.parse(storage.getItem("tacit"));
  delete kept.entries[0].row;
  storage.setItem("tacit", JSON.stringify(kept));
  assert.equal((await respondent().flush())[0].state, "sent");
  assert.equal(new Set(uploads.map(({ body }) => body.toString("hex"))).size, 1);
});

test("failures are tried again with the same bytes and growing waits", async () => {
  replies = [[503, {}], "drop", [429, {}, { "Retry-After": "7" }], [200, { ...RECEIPT, duplicate: true }]];
  const receipt = await respondent().answer(address(ONE), { colour: "red" });
  assert.equal(receipt.state, "sent");
  assert.equal(new Set(uploads.map(({ body }) => body.toString("hex"))).size, 1);
  assert.equal(uploads.length, 4);
  assert.ok(waits[0] >= 250 && waits[0] <= 500 && waits[1] >= 500 && waits[1] <= 1000);
  assert.equal(waits[2], 7000);
});

test("a second answer is refused with the first receipt, and draws nothing", async () => {
  const first = await respondent().answer(address(ONE), { colour: "red" });
  const before = storage.text;
  await assert.rejects(respondent().answer(address(ONE), { colour: "café" }), (error) => {
    return error.name === "AlreadyAnswered" && error.receipt.batch === first.batch;
  });
  assert.equal(storage.text, before);
  assert.equal(uploads.length, 1);
});

test("a document whose plan is no plan is refused, however often it is answered", async () => {
  const plan = { ...vector("a second round").document.plan, first: {} };
  const hostile = { ...vector(ONE).document, plan };
  foreign = JSON.stringify(hostile);
  for (let i = 0; i < 3; i += 1) {
    await assert.rejects(respondent().answer(`${base}/c/${digest(hostile)}`, { colour: "red" }), { name: "InvalidSpec" });
  }
  assert.deepEqual([uploads, storage.text], [[], ""]);
});

test("neither a collection nor a plan is answered twice, whatever its document says of the other", () => {
  const ledger = new Ledger(storage);
  const mechanism = deviceOf({ kind: "grr", epsilon: "1", size: 2 });
  const answer = (id, planId) => {
    const collection = { id, planId, title: {}, epsilon: "1", mechanism, encode: () => 0, checkRow: () => null };
    return ledger.record(collection, {}, { coins: new SystemCoins(), base });
  };
  answer("a", "b");
  for (const [id, planId] of [["a", "c"], ["d", "b"], ["b", "b"], ["e", "a"]]) {
    assert.throws(() => answer(id, planId), { name: "AlreadyAnswered" });
  }
  answer("d", "e");
});

test("a document that is not UTF-8 is not answered", async () => {
  const bytes = Buffer.from(JSON.stringify({ ...vector(ONE).document, title: { en: "caf\u00e9" } }), "latin1");
  foreign = bytes;
  await assert.rejects(respondent().open(`${base}/c/${"e".repeat(64)}`), { name: "InvalidSpec", message: /UTF-8/ });
});

test("what cannot be sent waits, survives a restart, and is flushed with the same bytes", async () => {
  replies = Array(4).fill([503, {}]);
  const receipt = await respondent().answer(address(ONE), { colour: "red" });
  assert.equal(receipt.state, "pending");
  const [flushed] = await respondent().flush();
  assert.deepEqual([flushed.state, flushed.batch], ["sent", receipt.batch]);
  assert.equal(new Set(uploads.map(({ body }) => body.toString("hex"))).size, 1);
  assert.deepEqual(await respondent().flush(), []);
});

test("a reply that is no receipt has stored nothing", async () => {
  replies = Array(4).fill([200, "<h1>Please log in</h1>"]);
  assert.equal((await respondent().answer(address(ONE), { colour: "red" })).state, "pending");
});

test("a wait that is too long is left to a later flush", async () => {
  replies = [[503, {}, { "Retry-After": "3600" }]];
  assert.equal((await respondent().answer(address(ONE), { colour: "red" })).state, "pending");
  assert.deepEqual([uploads.length, waits], [1, []]);
});

test("a final refusal is noted with its reason and not tried again", async () => {
  replies = [[410, { title: "closed" }]];
  const receipt = await respondent().answer(address(ONE), { colour: "red" });
  assert.deepEqual([receipt.state, receipt.reason, uploads.length], ["refused", "closed", 1]);
  replies = [[201, { accepted: 0, rejected: [{ index: 0, reason: "range" }], duplicate: false }]];
  const other = await respondent().answer(address("a number"), { age: 4 });
  assert.deepEqual([other.state, other.reason], ["refused", "range"]);
  assert.deepEqual(await respondent().flush(), []);
});

test("a document with another digest is not answered", async () => {
  await assert.rejects(respondent().answer(`${base}/c/${"f".repeat(64)}`, { colour: "red" }), { name: "InvalidSpec" });
  await assert.rejects(respondent().open(`${base}/c/${"0".repeat(64)}`), { name: "TacitError", message: /404/ });
  await assert.rejects(respondent().open(`${base}/c/1`), { name: "InvalidSpec" });
  assert.deepEqual([uploads, storage.text], [[], ""]);
});

test("a wrong answer is refused before anything is drawn", async () => {
  await assert.rejects(respondent().answer(address("a number"), { age: 121 }), { name: "InvalidValue" });
  assert.deepEqual([uploads, storage.text], [[], ""]);
});

test("coins that can be repeated are refused", () => {
  assert.throws(() => respondent({ coins: new ReplayCoins(unhex("00")) }), { name: "InvalidSpec" });
});

test("a ledger that cannot be read or written sends nothing", async () => {
  storage.setItem("tacit", "{");
  await assert.rejects(respondent().answer(address(ONE), { colour: "red" }), { name: "InvalidSpec" });
  storage = new Storage();
  storage.setItem = () => {
    throw new Error("full");
  };
  await assert.rejects(respondent().answer(address(ONE), { colour: "red" }), { message: "full" });
  assert.deepEqual(uploads, []);
});

test("a memoised mechanism repeats itself, and costs epsilon per different value", async () => {
  for (const colour of ["red", "red", "café", "red"]) {
    assert.equal((await respondent().answer(address("memoised"), { colour })).state, "sent");
  }
  const sent = uploads.map(({ body }) => uploaded(body));
  assert.equal(new Set(sent.map(({ batch }) => batch)).size, 4);
  const reports = sent.map(({ reports: [{ report }] }) => report);
  assert.equal(reports[1], reports[0]);
  assert.equal(reports[3], reports[0]);
  const { total, collections } = respondent().ledger();
  assert.deepEqual([total, collections.length], [2, 1]);
  assert.ok(!/red|café/.test(storage.text));
});

test("an invitation is sent along until the report arrived, and then forgotten", async () => {
  replies = [[503, {}]];
  await respondent().answer(address("all of two"), { colour: "red", smoker: true }, { invitation: "let-me-in" });
  assert.deepEqual(uploads.map(({ headers }) => headers["tacit-invitation"]), ["let-me-in", "let-me-in"]);
  assert.ok(!storage.text.includes("let-me-in"));
});

test("a page that goes away hands over a beacon, and one that is online again flushes", async () => {
  replies = Array(4).fill("drop");
  const client = respondent();
  await client.answer(address(ONE), { colour: "red" });
  const sent = [];
  client.fetch = async (url, request) => void sent.push([url, request]);
  const page = new EventTarget();
  client.attach(page);
  page.dispatchEvent(new Event("pagehide"));
  const [[url, { body, credentials, keepalive, method }]] = sent;
  assert.deepEqual([url, method, Buffer.from(body)], [`${address(ONE)}/reports`, "POST", uploads[0].body]);
  // A beacon of the browser's own would send cookies.
  assert.deepEqual([credentials, keepalive], ["omit", true]);
  assert.equal(client.store.read().entries[0].state, "pending");
  client.fetch = fetch;
  page.dispatchEvent(new Event("online"));
  while (client.store.read().entries[0].state === "pending") await new Promise((next) => setTimeout(next, 5));
  assert.deepEqual(uploads.at(-1).body, uploads[0].body);
});

test("a report that is held stays on the device, costs nothing, and is sent as it was shown once it is released", async () => {
  const client = respondent();
  const entry = await client.prepare(address(ONE), { colour: "red" });
  assert.equal(entry.state, "held");
  assert.deepEqual(await client.flush(), []);
  client.beacon();
  assert.deepEqual(uploads, []);
  const [row] = client.ledger().collections;
  assert.deepEqual([row.state, row.epsilon, client.ledger().total], ["held", 1, 0]);
  await assert.rejects(client.answer(address(ONE), { colour: "café" }), ({ name, receipt }) => {
    assert.deepEqual([name, receipt.state], ["AlreadyAnswered", "held"]);
    return true;
  });
  const receipt = await respondent().release(entry.batch);
  assert.deepEqual([receipt.state, receipt.batch], ["sent", entry.batch]);
  assert.equal(uploaded(uploads[0].body).reports[0].report, entry.report);
  assert.equal(client.ledger().total, 1);
  await assert.rejects(client.release(entry.batch), { name: "InvalidSpec" });
  await assert.rejects(client.release("00"), { name: "InvalidSpec" });
});

test("a report that is released while the collector is away is pending", async () => {
  replies = Array(4).fill("drop");
  const client = respondent();
  const { batch } = await client.prepare(address(ONE), { colour: "red" });
  assert.equal((await client.release(batch)).state, "pending");
  assert.equal(client.ledger().total, 1);
  assert.equal((await client.flush())[0].state, "sent");
});

test("reports are drawn from the operating system's entropy", () => assert.ok(respondent().coins instanceof SystemCoins));
