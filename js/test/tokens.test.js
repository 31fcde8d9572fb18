/** Anonymous tokens: asked for before anything is drawn, kept in the ledger, sent in the place of an invitation. */

import assert from "node:assert/strict";
import { constants, generateKeyPairSync, privateDecrypt, verify } from "node:crypto";
import { test } from "node:test";

import { digest } from "../src/numbers/canonical.js";
import { Respondent } from "../src/client/client.js";
import { hex } from "../src/numbers/sha256.js";
import { read } from "./vectors.js";

const DOCUMENT = read("documents.json").good.find(({ name }) => name === "tokens").document;
const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const { n } = /** @type {any} */ (publicKey.export({ format: "jwk" }));
const document = { ...DOCUMENT, tokens: { key: Buffer.from(n, "base64url").toString("hex") } };
const id = digest(document);
const address = `https://collector.example/c/${id}`;
const RECEIPT = { accepted: 1, rejected: [], duplicate: false };

/** A collector in miniature, and a device. `signs` answers requests for tokens; nothing to lose the reply. */
function world(signs = sign) {
  const items = new Map();
  const storage = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => void items.set(key, value) };
  const seen = { asked: [], sent: [] };
  const fetch = async (/** @type {string} */ url, /** @type {any} */ request) => {
    if (url.endsWith("document.json")) return new Response(JSON.stringify(document));
    if (url.endsWith("/tokens")) {
      seen.asked.push({ ...JSON.parse(request.body), invitation: request.headers["Tacit-Invitation"] });
      const [status, body] = signs(seen.asked.at(-1)) ?? [503, {}];
      return new Response(JSON.stringify(body), { status });
    }
    seen.sent.push(request.headers["Tacit-Invitation"]);
    return new Response(JSON.stringify(RECEIPT), { status: 201 });
  };
  const make = () => new Respondent({ storage, fetch, attempts: 1, sleep: async () => {} });
  return { make, seen, kept: () => JSON.parse(items.get("tacit") ?? "{}") };
}

/** @returns {[number, any]} */
function sign({ blinded }) {
  const key = { key: privateKey, padding: constants.RSA_NO_PADDING };
  return [201, { signature: hex(privateDecrypt(key, Buffer.from(blinded, "hex"))) }];
}

test("a report takes a token along that the platform's own RSA verifies", async () => {
  const { make, seen, kept } = world();
  const receipt = await make().answer(address, { colour: "red" }, { invitation: "inv_1" });
  assert.equal(receipt.state, "sent");
  const bytes = Buffer.from(seen.sent[0].slice(4), "base64url");
  const message = Buffer.concat([Buffer.from("tacit token\0"), Buffer.from(id, "hex"), bytes.subarray(0, 32)]);
  const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 };
  assert.ok(seen.sent[0].startsWith("tok_") && verify("sha384", message, key, bytes.subarray(32)));
  assert.deepEqual([kept().tokens, kept().entries[0].invitation], [{}, ""]);
  // A second answer asks for nothing.
  await assert.rejects(make().answer(address, { colour: "red" }, { invitation: "inv_2" }), { name: "AlreadyAnswered" });
  assert.equal(seen.asked.length, 1);
});

test("whoever lost the reply asks for the same again, and one who has a token needs no invitation", async () => {
  const replies = [() => undefined, sign];
  const { make, seen, kept } = world((asked) => replies.shift()?.(asked));
  await assert.rejects(make().answer(address, { colour: "red" }, { invitation: "inv_1" }), /nothing was drawn/);
  assert.equal(kept().entries.length, 0);
  await make().redeem(address, "inv_1");
  assert.equal(seen.asked[0].blinded, seen.asked[1].blinded);
  assert.deepEqual(Object.keys(kept().tokens[id]), ["token"]);
  assert.equal((await make().answer(address, { colour: "blue" })).state, "sent");
  assert.equal(seen.asked.length, 2);
});

test("being told to come later, or by a stranger, loses no token that was signed before", async () => {
  const replies = [() => undefined, () => [429, { title: "Too many requests" }], () => [403, {}], sign];
  const { make, seen, kept } = world((asked) => replies.shift()?.(asked));
  for (let i = 0; i < 3; i += 1) await assert.rejects(make().redeem(address, "inv_1"), /same invitation/);
  await make().redeem(address, "inv_1");
  assert.equal(new Set(seen.asked.map(({ blinded }) => blinded)).size, 1);
  assert.deepEqual(Object.keys(kept().tokens[id]), ["token"]);
});

test("two tabs ask for one token", async () => {
  const { make, seen } = world();
  await Promise.all([make().redeem(address, "inv_1"), make().redeem(address, "inv_1")]);
  assert.equal(new Set(seen.asked.map(({ blinded }) => blinded)).size, 1);
});

test("a refusal, a wrong signature and a wrong answer draw nothing", async () => {
  const refused = world(() => [403, { title: "The invitation is spent" }]);
  await assert.rejects(refused.make().answer(address, { colour: "red" }, { invitation: "inv_1" }), /is spent/);
  const forged = world(() => [201, { signature: "00".repeat(256) }]);
  await assert.rejects(forged.make().answer(address, { colour: "red" }, { invitation: "inv_1" }), { name: "ProtocolViolation" });
  const plain = world();
  await assert.rejects(plain.make().answer(address, {}, { invitation: "inv_1" }), { name: "InvalidValue" });
  await assert.rejects(plain.make().answer(address, { colour: "red" }), { name: "InvalidSpec" });
  assert.equal(plain.seen.asked.length, 0);
  for (const { kept } of [refused, forged, plain]) assert.equal(kept().entries?.length ?? 0, 0);
});
