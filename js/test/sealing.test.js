/** Sealing for shufflers, on the vectors that the Python client is held to. */

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { ReplayCoins, ScriptedCoins } from "../src/numbers/coins.js";
import { Collection } from "../src/documents/document.js";
import { SealingContext, checkBrowser, seal } from "../src/sealed/hpke.js";
import { isIncluded, isProof, proofIn, saysAborted } from "../src/sealed/inclusion.js";
import { QUESTION_BYTES, binaryRequest, contentOf, encapsulate, statusOf } from "../src/sealed/ohttp.js";
import { ruleOf, wordOf } from "../src/client/report_words.js";
import { sealReport } from "../src/sealed/sealing.js";
import { checkSession, checkSignatures } from "../src/sealed/session.js";
import { concat, hex, sha256, utf8 } from "../src/numbers/sha256.js";
import { deviceOf } from "../src/kinds.js";
import { sealUpload } from "../src/sealed/upload.js";
import { read, unhex } from "./vectors.js";

const [hpke, ohttp, shuffle, sessions] = ["hpke", "ohttp", "shuffle", "sessions"].map((name) => read(`${name}.json`));
const replay = (/** @type {string} */ coins) => new ReplayCoins(unhex(coins));

/** Coins that are these bytes. @param {string} text */
const exactly = (text) => new ScriptedCoins((text.match(/.{16}/g) ?? []).map((word) => BigInt(`0x${word.match(/../g)?.reverse().join("")}`)));

test("HPKE agrees with RFC 9180: keys, messages in order, exported secrets", async () => {
  for (const { info, sk_e, pk_r, enc, key, base_nonce, exporter_secret, seals, exports } of hpke.contexts) {
    const context = await SealingContext.open(unhex(pk_r), unhex(info), unhex(sk_e));
    assert.deepEqual([context.enc, context.key, context.baseNonce, context.exporterSecret].map(hex), [enc, key, base_nonce, exporter_secret]);
    for (const { context: about, length, value } of exports) assert.equal(hex(context.export(unhex(about), length)), value);
    const made = new Map();
    for (let i = 0; i <= seals.at(-1).sequence; i += 1) {
      const { aad, pt } = seals.find(({ sequence }) => sequence === i) ?? seals[0];
      made.set(i, hex(await context.seal(unhex(pt), unhex(aad))));
    }
    for (const { sequence, ct } of seals) assert.equal(made.get(sequence), ct);
  }
});

test("single messages are sealed to the bytes of the Python client", async () => {
  for (const { pk_r, pt, info, sk_e, aad, sealed } of hpke.single) {
    assert.equal(hex(await seal(unhex(pk_r), unhex(pt), unhex(info), exactly(sk_e), unhex(aad))), sealed);
  }
});

test("nothing is sealed for keys that are none, nor for points of low order", async () => {
  for (const key of ["", "00".repeat(31), "00".repeat(32), `01${"00".repeat(31)}`]) {
    const sealing = seal(unhex(key), utf8("word"), utf8("info"), replay("00"));
    await assert.rejects(sealing, { name: "ProtocolViolation", message: /X25519/ });
  }
});

test("requests through a relay agree with RFC 9458 and with the Python client", async () => {
  const { rfc, own } = ohttp;
  const made = await encapsulate(1, unhex(rfc.key_config.slice(6, 70)), unhex(rfc.request), exactly(rfc.sk_e));
  assert.equal(hex(made.sent), rfc.encapsulated_request);
  assert.equal(hex(await made.open(unhex(rfc.encapsulated_response))), rfc.response);
  const request = binaryRequest("POST", "https://shuffler.example/uploads", { "content-type": "text/plain" }, utf8("upload"));
  assert.equal(hex(request), own.request);
  const other = await encapsulate(7, unhex(own.keys.slice(10, 74)), request, exactly(own.sk_e));
  assert.equal(hex(other.sent), own.encapsulated_request);
  const answer = await other.open(unhex(own.encapsulated_response));
  assert.deepEqual([hex(answer), statusOf(answer)], [own.response, 202]);
});

test("questions and their answers agree with the Python client", () => {
  const { own } = ohttp;
  assert.equal(hex(binaryRequest("GET", "https://shuffler/s/x/status", {}, new Uint8Array(), QUESTION_BYTES)), own.question);
  for (const { status, content, message } of own.answers) {
    assert.deepEqual([statusOf(unhex(message)), Buffer.from(contentOf(unhex(message))).toString()], [status, content]);
  }
  // Fields are not used, and a message that has some is not guessed at.
  assert.equal(contentOf(Uint8Array.of(1, 0x40, 200, 2, 1, 1, 1, 65)).length, 0);
  assert.equal(contentOf(new Uint8Array()).length, 0);
});

test("an answer that was altered, or is another request's, does not open", async () => {
  const { rfc, own } = ohttp;
  const made = await encapsulate(1, unhex(rfc.key_config.slice(6, 70)), unhex(rfc.request), exactly(rfc.sk_e));
  const altered = unhex(rfc.encapsulated_response);
  altered[20] ^= 1;
  for (const answer of [altered, unhex(own.encapsulated_response), new Uint8Array(), unhex(rfc.encapsulated_response).slice(0, 20)]) {
    await assert.rejects(made.open(answer), { name: "TacitError", message: /answer of the shuffler/ });
  }
});

test("a binary message is a response of known length, or has no status", () => {
  assert.deepEqual(["0140ca000000", "0140c8", "0040ca", "01", "", "0180ca"].map((text) => statusOf(unhex(text))), [202, 200, 0, 0, 0, 0]);
});

test("long addresses and contents keep to whole blocks, whatever is in them", () => {
  const sizes = [0, 1, 63, 64, 200, 5000].map((size) => binaryRequest("POST", "https://a.example:8443/s", { a: "b" }, new Uint8Array(size)).length);
  assert.ok(sizes.every((size) => size % 64 === 0));
  assert.deepEqual(sizes, [...sizes].sort((a, b) => a - b));
});

test("a report becomes a word that decodes to it, by the coins of the Python client", () => {
  for (const { spec, report, coins, word } of shuffle.words) {
    assert.equal(String(wordOf(ruleOf(deviceOf(spec)), unhex(report), replay(coins))), word);
  }
});

test("uploads have the bytes of the Python client, in every mode", async () => {
  for (const { mode, signed, id, word, coins, slot, parts } of shuffle.uploads) {
    const made = await sealUpload({ ...signed.session, id }, BigInt(word), replay(coins));
    assert.deepEqual([hex(made.slot), made.parts.map(hex)], [slot, parts], mode);
  }
});

test("signatures count by the pinned keys alone", async () => {
  const order = (/** @type {any} */ pinned) => Object.keys(pinned).sort().map((name) => ({ identity: pinned[name] }));
  for (const { signed, pinned } of shuffle.uploads) await checkSignatures(signed.session, signed.signatures, order(pinned));
  for (const { name, signed, pinned } of shuffle.refused_sessions) {
    await assert.rejects(checkSignatures(signed.session, signed.signatures, order(pinned)), { name: "ProtocolViolation" }, name);
  }
});

test("an abort counts if the pinned shuffler signed it, before its rows had left it", async () => {
  assert.ok(shuffle.statuses.some((/** @type {any} */ { aborted }) => aborted));
  for (const { name, identity, session, reply, aborted } of shuffle.statuses) {
    assert.equal(await saysAborted(identity, session, reply), aborted, name);
  }
});

test("a session that its document allows is verified, and reports are sealed for it as by the Python client", async () => {
  for (const { name, document, published, id, report, coins, sealed } of sessions.good) {
    const collection = await Collection.read(document);
    const session = await checkSession(collection, published);
    assert.equal(session.id, id, name);
    assert.deepEqual(await sealReport(/** @type {any} */ ({ coins: replay(coins) }), session, report), sealed, name);
  }
});

test("sessions that a document does not allow are refused, whoever signed them", async () => {
  assert.ok(sessions.bad.length > 30);
  for (const { name, document: of, published } of sessions.bad) {
    const collection = await Collection.read(sessions.good.find((one) => one.name === of).document);
    await assert.rejects(checkSession(collection, published), { name: "ProtocolViolation" }, name);
  }
});

test("without an accountant a claim that is too small stays a claim", async () => {
  const [{ document: of, published }] = sessions.bad_for_accountants;
  const collection = await Collection.read(sessions.good.find((one) => one.name === of).document);
  assert.equal((await checkSession(collection, published)).certificate.epsilon, "0.00001");
});

test("values without a canonical form, at any place, refuse a session", async () => {
  const { document, published } = sessions.good[0];
  const collection = await Collection.read(document);
  for (const value of [0.5, 2 ** 60, { A: 1 }, "\ud800"]) {
    for (const name of Object.keys(published.session)) {
      const session = { ...published.session, [name]: value };
      await assert.rejects(checkSession(collection, { ...published, session }), { name: "ProtocolViolation" }, name);
    }
  }
});

test("the mode that needs homomorphic encryption is refused, in words", async () => {
  const { document, published } = sessions.good[0];
  const collection = await Collection.read({ ...document, shuffle: { ...document.shuffle, mode: "peos-dgk" } });
  await assert.rejects(checkSession(collection, published), { name: "CannotSeal", reason: "mode", message: /mode of the shuffle.*nothing was sent in the clear/ });
});

test("the hashes of all slots give the proofs of shufflers, for lists of every size", async () => {
  for (const { slots, root, proofs } of shuffle.proofs) {
    const leaves = slots.map((/** @type {string} */ slot) => hex(sha256(concat(Uint8Array.of(0), unhex(slot)))));
    const roster = { session: "", root, n: slots.length, leaves };
    for (const proof of proofs) assert.deepEqual(await proofIn(roster, proof.slot), { ...proof, root, n: slots.length });
    assert.equal(await proofIn(roster, "77".repeat(16)), null);
    await assert.rejects(proofIn({ ...roster, root: "00".repeat(32) }, slots[0]), { name: "ProtocolViolation" });
  }
  // Across batches, and with nodes that move up alone: any change of any hash changes the root.
  const leaves = Array.from({ length: 4099 }, (_, i) => hex(sha256(utf8(String(i)))));
  let level = leaves.map(unhex);
  while (level.length > 1) {
    const pairs = Array.from({ length: Math.ceil(level.length / 2) }, (_, i) => level.slice(2 * i, 2 * i + 2));
    level = pairs.map(([left, right]) => (right ? sha256(concat(Uint8Array.of(1), left, right)) : left));
  }
  const roster = { session: "", root: hex(level[0]), n: leaves.length, leaves };
  assert.equal(await proofIn(roster, "77".repeat(16)), null);
  await assert.rejects(proofIn({ ...roster, leaves: [...leaves.slice(0, -1), "00".repeat(32)] }, "77".repeat(16)), { name: "ProtocolViolation" });
});

test("a path shows that a slot is in a list, and another path, place or size does not", () => {
  for (const { slots, root, proofs } of shuffle.proofs) {
    for (const proof of proofs) {
      assert.ok(isProof({ ...proof, root, n: slots.length }, proof.slot) && isIncluded(root, slots.length, proof));
      assert.ok(!isIncluded(root, slots.length, { ...proof, slot: "00".repeat(16) }));
      assert.ok(!isIncluded(root, slots.length, { ...proof, path: [...proof.path, root] }));
      assert.ok(!isIncluded("00".repeat(32), slots.length, proof));
      for (const index of [-1, slots.length, 0.5, (proof.index + 1) % slots.length].filter((one) => one !== proof.index)) {
        assert.ok(!isIncluded(root, slots.length, { ...proof, index }));
      }
      if (proof.path.length) assert.ok(!isIncluded(root, slots.length, { ...proof, path: proof.path.slice(1) }));
    }
  }
  assert.ok(!isIncluded("00".repeat(32), /** @type {any} */ ("1"), { slot: "aa", index: 0, path: [] }));
  for (const bad of [null, [], {}, { slot: "aa", index: 0, path: "x" }, { slot: "aa", index: 0, path: ["x"] }]) assert.ok(!isProof(bad, "aa"));
});

const real = Object.getOwnPropertyDescriptor(globalThis, "crypto");
afterEach(() => {
  Object.defineProperty(globalThis, "crypto", /** @type {PropertyDescriptor} */ (real));
  delete (/** @type {any} */ (globalThis).isSecureContext);
});

/** @param {any} crypto @param {boolean} [secure] */
function browser(crypto, secure) {
  Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true, writable: true });
  if (secure !== undefined) /** @type {any} */ (globalThis).isSecureContext = secure;
}

test("a page that is not secure, and a browser that lacks an algorithm, are told apart before anything is drawn", async () => {
  await checkBrowser();
  const { subtle } = globalThis.crypto;
  browser({ getRandomValues: () => undefined }, false);
  await assert.rejects(checkBrowser(), { name: "CannotSeal", reason: "insecure", message: /https/ });
  browser({}, true);
  await assert.rejects(checkBrowser(), { name: "CannotSeal", reason: "browser" });
  for (const missing of ["X25519", "Ed25519", "AES-GCM"]) {
    const importKey = async (/** @type {any[]} */ ...given) => {
      if (given[2] === missing) throw new DOMException("no such algorithm", "NotSupportedError");
      return /** @type {any} */ (subtle.importKey).apply(subtle, given);
    };
    browser({ subtle: { importKey } }, true);
    await assert.rejects(checkBrowser(), { name: "CannotSeal", reason: "browser", message: /newer/ }, missing);
  }
});
