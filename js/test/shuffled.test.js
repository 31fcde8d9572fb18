/** The client of a shuffled collection, against shufflers with real keys: what is sealed, sent, kept, and never sent. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, test } from "node:test";

import { Respondent } from "../src/client/client.js";
import { isIncluded } from "../src/sealed/inclusion.js";
import { concat, hex, sha256, unhex } from "../src/numbers/sha256.js";
import { Shuffle } from "./shufflers.js";

/** @type {Shuffle[]} */
let started = [];
afterEach(async () => {
  await Promise.all(started.map((shuffle) => shuffle.stop()));
  started = [];
});

/** @param {any} [terms] @param {any} [document] */
async function begin(terms, document) {
  const shuffle = await Shuffle.start(terms, document);
  started.push(shuffle);
  return shuffle;
}

/** A storage that outlives respondents, as a browser's does. */
class Storage {
  items = new Map();
  getItem = (key) => this.items.get(key) ?? null;
  setItem = (key, value) => void this.items.set(key, value);
  get entries() {
    return JSON.parse(this.items.get("tacit") ?? '{"entries": []}').entries;
  }
}

const client = (storage, options = {}) => new Respondent({ storage, attempts: 2, sleep: async () => undefined, ...options });
const posts = ({ requests }) => requests.filter(([method]) => method === "POST").map(([, path]) => path);
const ANSWER = { colour: "red" };

for (const terms of [{}, { relay: true }, { mode: "ss" }, { mode: "relay", relay: true }, { mode: "osh-z" }]) {
  const through = terms.relay ? "through a relay" : "straight to the shufflers";
  test(`${terms.mode ?? "osh"}: a report arrives sealed ${through}, and the receipt names session and slot`, async () => {
    const [shuffle, storage] = [await begin(terms), new Storage()];
    const receipt = await client(storage).answer(shuffle.address, ANSWER);
    const [{ sealed, report, state }] = storage.entries;
    assert.deepEqual([receipt.state, receipt.session, receipt.slot, state], ["sent", shuffle.sessionId, sealed.slot, "sent"]);
    assert.equal(hex(shuffle.bodies(1)[0].slice(0, 16)), receipt.slot);
    assert.equal(Number((await shuffle.word()) % 3n), Number(`0x${report}`));
    assert.ok(!posts(shuffle).some((path) => path.startsWith("/c/")));
    assert.equal(client(storage).ledger().total, 1);
  });
}

test("through a relay, nobody but the relay is written to", async () => {
  const [shuffle, storage] = [await begin({ relay: true }), new Storage()];
  await client(storage).answer(shuffle.address, ANSWER);
  const direct = shuffle.requests.filter(([method, , headers]) => method === "POST" && !headers.relayed);
  assert.deepEqual(direct.map(([, path]) => path), ["/relay/r"]);
  assert.ok(direct.every(([, , headers]) => headers["content-type"] === "text/plain" && !headers.cookie));
});

test("through a relay, a shuffler that was away gets the same bytes, and so do the others", async () => {
  const [shuffle, storage] = [await begin({ relay: true }), new Storage()];
  shuffle.dead.add(2);
  const receipt = await client(storage, { attempts: 1 }).answer(shuffle.address, ANSWER);
  assert.deepEqual([receipt.state, receipt.reason], ["pending", "shuffler_2: the relay did not bring its answer"]);
  const before = [1, 2, 3].map((i) => shuffle.bodies(i).length);
  assert.equal(before[1], 0);
  shuffle.dead.clear();
  const [again] = await client(storage).flush();
  assert.deepEqual([again.state, again.reason, again.slot], ["sent", "", receipt.slot]);
  assert.deepEqual([1, 2, 3].map((i) => shuffle.bodies(i).length), before.map((count) => count + 1));
  assert.deepEqual([1, 2, 3].map((i) => new Set(shuffle.bodies(i).map(hex)).size), [1, 1, 1]);
});

test("through a relay, questions are not asked straight, and all look the same", async () => {
  const [shuffle, storage] = [await begin({ relay: true }), new Storage()];
  const { batch, slot } = await client(storage).answer(shuffle.address, ANSWER);
  shuffle.requests.length = 0;
  assert.equal((await client(storage).check(batch)).state, "waiting");
  const proof = { slot, index: 0, path: [], root: hex(sha256(concat(Uint8Array.of(0), unhex(slot)))), n: 1 };
  shuffle.instead.set(`/s_2/s/${shuffle.sessionId}/proof/${slot}`, [200, proof]);
  assert.deepEqual(await client(storage).check(batch), { state: "shown", respondents: 1 });
  for (const i of [1, 2]) shuffle.states.set(i, "ABORTED");
  assert.equal((await client(storage).check(batch)).state, "aborted");
  const straight = shuffle.requests.filter(([, path, headers]) => path.startsWith("/s_") && !headers.relayed);
  assert.deepEqual(straight, []);
  const asked = shuffle.requests.filter(([, path]) => path.startsWith("/relay/r/"));
  assert.deepEqual([new Set(asked.map(([, , , body]) => body.length)).size, asked.length > 6], [1, true]);
  // What an earlier release kept has no keys beside those of the parts.
  const kept = JSON.parse(storage.items.get("tacit"));
  for (const { sealed } of kept.entries) delete sealed.keys;
  storage.items.set("tacit", JSON.stringify(kept));
  assert.equal((await client(storage).check(batch)).state, "aborted");
});

test("sizes and headers of all requests are the same, whatever is answered", async () => {
  for (const relay of [false, true]) {
    const shuffle = await begin(relay ? { relay } : {});
    const seen = new Set();
    for (const colour of ["red", "green", "blue"]) {
      shuffle.requests.length = 0;
      await client(new Storage()).answer(shuffle.address, { colour });
      const shape = ([method, path, { host, ...headers }, body]) => [method, path, headers, body.length];
      seen.add(JSON.stringify(shuffle.requests.map(shape)));
    }
    assert.equal(seen.size, 1);
  }
});

test("the noisy report and the answer are in no request", async () => {
  const [shuffle, storage] = [await begin({}, { epsilon: "1", mechanism: { kind: "grr", epsilon: "1", size: 3 } }), new Storage()];
  await client(storage).answer(shuffle.address, ANSWER);
  const [{ parts }] = storage.entries.map(({ sealed }) => sealed);
  for (const [i, { body }] of parts.entries()) assert.deepEqual(shuffle.bodies(i + 1).map(hex), [body]);
  assert.ok(!shuffle.requests.some(([, path, headers, body]) => `${path}${JSON.stringify(headers)}${Buffer.from(body)}`.includes("red")));
});

test("a shuffler that does not answer leaves the report pending, and is sent the same bytes later", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  shuffle.dead.add(2);
  const receipt = await client(storage).answer(shuffle.address, ANSWER);
  assert.deepEqual([receipt.state, receipt.reason], ["pending", "shuffler_2: no reply"]);
  assert.deepEqual([1, 2, 3].map((i) => new Set(shuffle.bodies(i).map(hex)).size), [1, 1, 1]);
  assert.deepEqual([1, 2, 3].map((i) => shuffle.bodies(i).length), [1, 2, 1]);
  shuffle.dead.clear();
  const [again] = await client(storage).flush();
  assert.deepEqual([again.state, again.reason, again.slot], ["sent", "", receipt.slot]);
  assert.deepEqual([1, 2, 3].map((i) => new Set(shuffle.bodies(i).map(hex)).size), [1, 1, 1]);
  assert.ok(!posts(shuffle).some((path) => path.startsWith("/c/")));
});

test("a shuffler that says anything but 202 does not have the part", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  shuffle.instead.set(`/s_3/s/${shuffle.sessionId}/uploads`, [200, { accepted: 1 }]);
  const receipt = await client(storage).answer(shuffle.address, ANSWER);
  assert.deepEqual([receipt.state, receipt.reason], ["pending", "shuffler_3: status 200"]);
});

test("a relay that answers in the place of a shuffler is not believed", async () => {
  const [shuffle, storage] = [await begin({ relay: true }), new Storage()];
  const fetched = async (/** @type {any} */ url, /** @type {any} */ request) =>
    url.includes("/relay/") ? new Response(new Uint8Array(60)) : fetch(url, request);
  const receipt = await client(storage, { fetch: fetched }).answer(shuffle.address, ANSWER);
  assert.equal(receipt.state, "pending");
  assert.match(receipt.reason, /^shuffler_1: the relay did not bring its answer; shuffler_2/);
});

test("after an abort the same report is sealed afresh for the next session", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const first = await client(storage).answer(shuffle.address, ANSWER);
  const [before] = storage.entries;
  for (const i of [1, 2]) shuffle.states.set(i, "ABORTED");
  await shuffle.convene();
  const [second] = await client(storage).flush();
  const [after] = storage.entries;
  assert.deepEqual([second.state, second.session, after.report, after.batch], ["sent", shuffle.sessionId, before.report, before.batch]);
  assert.notEqual(second.slot, first.slot);
  assert.equal(Number((await shuffle.word()) % 3n), Number(`0x${before.report}`));
  assert.equal(client(storage).ledger().total, 1);
});

test("an abort that the pinned shufflers did not sign does not make a report be sealed again", async () => {
  for (const relay of [false, true]) {
    const [shuffle, storage] = [await begin(relay ? { relay } : {}), new Storage()];
    const { batch, slot, session } = await client(storage).answer(shuffle.address, ANSWER);
    for (const i of [1, 2, 3]) shuffle.states.set(i, "ABORTED");
    const plain = { session, state: "ABORTED", had_sent: false };
    const forged = [
      () => plain,
      (/** @type {number} */ i) => shuffle.status(i, session, 0),
      (/** @type {number} */ i) => shuffle.status(i, session, 1 + (i % 3)),
      async (/** @type {number} */ i) => ({ ...(await shuffle.status(i, "00".repeat(32))), session }),
    ];
    const keys = shuffle.keys;
    await shuffle.convene();
    // Questions about the first session are sealed for its keys.
    shuffle.keys = keys;
    for (const make of forged) {
      for (const i of [1, 2, 3]) shuffle.instead.set(`/s_${i}/s/${session}/status`, [200, await make(i)]);
      assert.deepEqual(await client(storage).flush(), []);
      assert.equal(storage.entries[0].sealed.slot, slot);
    }
    assert.equal((await client(storage).check(batch)).state, "waiting");
    shuffle.instead.clear();
    assert.equal((await client(storage).check(batch)).state, "aborted");
  }
});

test("neither the collector nor a minority of shufflers makes a report be sealed again", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const first = await client(storage).answer(shuffle.address, ANSWER);
  shuffle.states.set(1, "ABORTED");
  await shuffle.convene();
  assert.deepEqual(await client(storage).flush(), []);
  assert.equal(storage.entries[0].sealed.slot, first.slot);
  assert.deepEqual(shuffle.bodies(1), []);
});

test("a report that may have reached the collector before the abort is not sealed again", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  await client(storage).answer(shuffle.address, ANSWER);
  for (const i of [1, 2, 3]) shuffle.states.set(i, "ABORTED");
  for (const i of [1, 2]) shuffle.late.add(i);
  await shuffle.convene();
  assert.deepEqual(await client(storage).flush(), []);
  shuffle.late.delete(1);
  assert.equal((await client(storage).flush())[0].session, shuffle.sessionId);
});

test("a session that is not as it must be, or has closed, draws nothing", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const { published } = shuffle;
  const attempt = () => client(storage).answer(shuffle.address, ANSWER);
  shuffle.published = { ...published, signatures: published.signatures.slice(1) };
  await assert.rejects(attempt(), { name: "ProtocolViolation", message: /not signed by collector/ });
  shuffle.published = { ...published, session: { ...published.session, n_min: 2 } };
  await assert.rejects(attempt(), { name: "ProtocolViolation" });
  shuffle.published = { nothing: 1 };
  await assert.rejects(attempt(), { name: "ProtocolViolation" });
  shuffle.published = published;
  await assert.rejects(client(storage, { now: () => 4e12 }).answer(shuffle.address, ANSWER), { name: "TacitError", message: /closed/ });
  shuffle.instead.set(`/c/${shuffle.id}/session.json`, [404, {}]);
  await assert.rejects(attempt(), { name: "TacitError", message: /no session takes reports now/ });
  assert.deepEqual([storage.entries, posts(shuffle)], [[], []]);
});

test("a document that was altered is not answered, even if its session is", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  shuffle.document = { ...shuffle.document, minimum_cohort: 1 };
  await assert.rejects(client(storage).answer(shuffle.address, ANSWER), { name: "InvalidSpec", message: /another digest/ });
  assert.deepEqual([storage.entries, posts(shuffle)], [[], []]);
});

test("a report that was shown is sealed when it is released, for the session of that time", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const entry = await client(storage).prepare(shuffle.address, ANSWER);
  assert.deepEqual([entry.state, entry.sealed, posts(shuffle)], ["held", null, []]);
  await shuffle.convene();
  const receipt = await client(storage).release(entry.batch);
  assert.deepEqual([receipt.state, receipt.session, storage.entries[0].report], ["sent", shuffle.sessionId, entry.report]);
});

test("a report that could not be sealed when it was released waits, and never goes in the clear", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const entry = await client(storage).prepare(shuffle.address, ANSWER);
  const { published } = shuffle;
  shuffle.published = null;
  const receipt = await client(storage).release(entry.batch);
  assert.deepEqual([receipt.state, receipt.session], ["pending", undefined]);
  assert.match(receipt.reason, /session/);
  client(storage).beacon();
  shuffle.published = published;
  const [again] = await client(storage).flush();
  assert.deepEqual([again.state, again.reason], ["sent", ""]);
  assert.ok(posts(shuffle).every((path) => /^\/s_\d\//.test(path)));
});

test("without the cryptography of a secure page nothing is drawn, and what was drawn waits", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const entry = await client(storage).prepare(shuffle.address, ANSWER);
  const real = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(globalThis, "crypto"));
  const { getRandomValues } = globalThis.crypto;
  const value = { getRandomValues: getRandomValues.bind(globalThis.crypto) };
  Object.defineProperty(globalThis, "crypto", { value, configurable: true, writable: true });
  try {
    await assert.rejects(client(new Storage()).answer(shuffle.address, ANSWER), { name: "CannotSeal" });
    const receipt = await client(storage).release(entry.batch);
    assert.deepEqual([receipt.state, posts(shuffle)], ["pending", []]);
    assert.match(receipt.reason, /nothing was sent in the clear/);
  } finally {
    Object.defineProperty(globalThis, "crypto", real);
  }
  assert.equal((await client(storage).flush())[0].state, "sent");
});

test("two tabs that seal one report send one of two forms, not both", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  const entry = await client(storage).prepare(shuffle.address, ANSWER);
  client(storage).store.settle(entry.batch, { state: "pending" });
  const both = await Promise.all([client(storage).flush(), client(storage).flush()]);
  const slots = new Set(both.flat().map(({ slot }) => slot));
  assert.deepEqual([slots.size, new Set(shuffle.bodies(1).map(hex)).size], [1, 1]);
});

test("an invitation goes along as the hash that is stored of it, to every shuffler", async () => {
  const [shuffle, storage] = [await begin(), new Storage()];
  await client(storage).answer(shuffle.address, ANSWER, { invitation: "inv_1" });
  const token = createHash("sha256").update("invitation:inv_1").digest("hex");
  for (const i of [1, 2, 3]) assert.equal(hex(shuffle.bodies(i)[0]).slice(-64), token);
  assert.ok(!shuffle.requests.some(([, , , body]) => Buffer.from(body).includes("inv_1")));
});

test("a page that goes away hands over every part, or none where a relay would take time", async () => {
  for (const relay of [false, true]) {
    const [shuffle, storage] = [await begin(relay ? { relay } : {}), new Storage()];
    shuffle.dead.add(3);
    const sent = [];
    const fetched = (/** @type {any} */ url, /** @type {any} */ request) => {
      if (request.keepalive) sent.push([url, hex(request.body)]);
      return fetch(url, request);
    };
    const respondent = client(storage, { fetch: fetched });
    assert.equal((await respondent.answer(shuffle.address, ANSWER)).state, "pending");
    respondent.beacon();
    const [{ sealed }] = storage.entries;
    const wanted = sealed.parts.map(({ url, body }) => [`${url}/s/${sealed.session}/uploads`, body]);
    assert.deepEqual(sent, relay ? [] : wanted);
  }
});

/** Where the transcript of the session is. @param {Shuffle} shuffle */
const placeOf = ({ id, sessionId }) => `/c/${id}/transcript.json?session=${sessionId}`;

/** A transcript of a session in which these slots took part. @param {Shuffle} shuffle @param {string[]} slots */
async function transcript(shuffle, slots) {
  const leaf = (/** @type {string} */ slot) => sha256(Uint8Array.of(0, ...unhex(slot)));
  const [one, other] = slots.map(leaf);
  const root = hex(sha256(Uint8Array.of(1, ...one, ...other)));
  const statement = { session: shuffle.sessionId, attempt: 1, root, n: 2 };
  const signatures = Object.fromEntries((await shuffle.signed("roster", statement)).map(({ by, signature }) => [by, signature]));
  const path = (/** @type {number} */ i) => [hex(i ? one : other)];
  slots.forEach((slot, index) => shuffle.instead.set(`/s_2/s/${shuffle.sessionId}/proof/${slot}`, [200, { slot, index, path: path(index), root, n: 2 }]));
  const leaves = hex(one) + hex(other);
  shuffle.instead.set(placeOf(shuffle), [200, { session: shuffle.published, transcript: { session: shuffle.sessionId, attempt: 1, roster: { root, n: 2, signatures, leaves } } }]);
  return { statement, signatures, leaves };
}

test("a receipt is looked up: waiting, aborted, missing, shown, included", async () => {
  const [shuffle, storage] = [await begin({ minimum: 2, spot_checks: 0 }, { minimum_cohort: 2 }), new Storage()];
  const { batch, slot } = await client(storage).answer(shuffle.address, ANSWER, { invitation: "inv" });
  assert.deepEqual(await client(storage).check(batch), { state: "waiting", respondents: 0 });
  for (const i of [2, 3]) shuffle.states.set(i, "ABORTED");
  assert.equal((await client(storage).check(batch)).state, "aborted");
  await transcript(shuffle, ["00".repeat(16), "11".repeat(16)]);
  assert.deepEqual(await client(storage).check(batch), { state: "missing", respondents: 2 });
  assert.equal(storage.entries[0].sealed.took_part, false);
  shuffle.states.clear();
  await transcript(shuffle, [slot, "11".repeat(16)]);
  const [place, published] = [placeOf(shuffle), shuffle.instead.get(placeOf(shuffle))];
  shuffle.instead.delete(place);
  assert.deepEqual(await client(storage).check(batch), { state: "shown", respondents: 2 });
  assert.equal(storage.entries[0].sealed.took_part, false);
  // Shufflers have erased their slots when the transcript is published.
  for (const path of [...shuffle.instead.keys()]) shuffle.instead.delete(path);
  shuffle.instead.set(place, /** @type {any} */ (published));
  assert.deepEqual(await client(storage).check(batch), { state: "included", respondents: 2 });
  assert.deepEqual([storage.entries[0].sealed.took_part, storage.entries[0].invitation], [true, ""]);
  // A report that is known to have taken part is never sealed again, whoever speaks of an abort.
  await shuffle.convene();
  for (const i of [1, 2, 3]) shuffle.states.set(i, "ABORTED");
  assert.deepEqual(await client(storage).flush(), []);
  shuffle.instead.clear();
  await client(storage).check(batch);
  assert.equal(storage.entries[0].sealed.took_part, true);
});

test("a published transcript is enough: no shuffler is asked about the slot, and the proof is kept", async () => {
  const [shuffle, storage] = [await begin({ minimum: 2, spot_checks: 0 }, { minimum_cohort: 2 }), new Storage()];
  const { batch, slot } = await client(storage).answer(shuffle.address, ANSWER);
  const { statement: { root, n } } = await transcript(shuffle, ["11".repeat(16), slot]);
  for (const i of [1, 2, 3]) shuffle.dead.add(i);
  shuffle.requests.length = 0;
  assert.deepEqual(await client(storage).check(batch), { state: "included", respondents: 2 });
  assert.deepEqual(shuffle.requests.filter(([, path]) => path.startsWith("/s_")), []);
  const [{ sealed: { proof } }] = storage.entries;
  assert.deepEqual([proof.slot, proof.index, proof.root, proof.n, isIncluded(root, n, proof)], [slot, 1, root, 2, true]);
});

test("a proof that leads to another root than it states is none", async () => {
  const [shuffle, storage] = [await begin({ minimum: 2, spot_checks: 0 }, { minimum_cohort: 2 }), new Storage()];
  const { batch, slot } = await client(storage).answer(shuffle.address, ANSWER);
  const good = { slot, index: 0, path: ["11".repeat(32)], root: "22".repeat(32), n: 2 };
  for (const bad of [good, { ...good, root: 5 }, { ...good, n: "2" }, { ...good, path: null }, [], "x"]) {
    shuffle.instead.set(`/s_1/s/${shuffle.sessionId}/proof/${slot}`, [200, bad]);
    assert.equal((await client(storage).check(batch)).state, "waiting");
  }
});

test("a transcript that not all shufflers signed, or that lists too few, is refused", async () => {
  const [shuffle, storage] = [await begin({ minimum: 2, spot_checks: 0 }, { minimum_cohort: 2 }), new Storage()];
  const { batch, slot } = await client(storage).answer(shuffle.address, ANSWER);
  const { statement, signatures, leaves } = await transcript(shuffle, [slot, "11".repeat(16)]);
  for (const roster of [
    { ...statement, leaves, signatures: { ...signatures, shuffler_2: signatures.shuffler_1 } },
    { ...statement, leaves, n: 3, signatures },
    { ...statement, leaves, n: 1, signatures },
    null,
    // Hashes that are missing, too few, no hashes, twice the same, in another order, or of other slots.
    ...[undefined, 5, "", leaves.slice(64), `${leaves}00`, `${leaves.slice(64)}\n${leaves.slice(65)}`, leaves.slice(64).repeat(2)].map((wrong) => ({ ...statement, signatures, leaves: wrong })),
    { ...statement, signatures, leaves: leaves.slice(64) + leaves.slice(0, 64) },
    { ...statement, signatures, leaves: leaves.slice(0, 64) + "22".repeat(32) },
  ]) {
    shuffle.instead.set(placeOf(shuffle), [200, { transcript: { session: shuffle.sessionId, attempt: 1, roster } }]);
    await assert.rejects(client(storage).check(batch), { name: "ProtocolViolation" });
  }
  await assert.rejects(client(new Storage()).check(batch), { name: "InvalidSpec" });
});
