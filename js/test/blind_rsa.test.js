/** Blind signatures: the vector of the draft of RFC 9474 holds, and the platform's own RSA agrees with ours. */

import assert from "node:assert/strict";
import { constants, generateKeyPairSync, privateDecrypt, sign, verify } from "node:crypto";
import { test } from "node:test";

import { blind, blindWith, encodePss, finalize, isBlindSigned, widthOf } from "../src/sealed/blind_rsa.js";
import { ReplayCoins, SystemCoins } from "../src/numbers/coins.js";
import { InvalidSpec } from "../src/errors.js";
import { hex, utf8 } from "../src/numbers/sha256.js";
import { read, unhex } from "./vectors.js";

const MESSAGE = utf8("type, nonce, challenge and key id");
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 };

/** A key of the platform: its private operation without padding is what a signer does. @param {number} bits */
function signer(bits) {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: bits });
  const { n, e } = /** @type {any} */ (publicKey.export({ format: "jwk" }));
  const [modulus, exponent] = [n, e].map((text) => BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`));
  const answer = (/** @type {Uint8Array} */ blinded) =>
    new Uint8Array(privateDecrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, blinded));
  return { key: { modulus, exponent }, publicKey, privateKey, answer };
}

test("the vector of the draft of the RFC holds at every step", async () => {
  const vector = read("blind_rsa.json");
  const [p, q, exponent, inverse] = ["p", "q", "exponent", "inverse"].map((name) => BigInt(`0x${vector[name]}`));
  const key = { modulus: p * q, exponent };
  const bits = key.modulus.toString(2).length - 1;
  const message = unhex(vector.message);
  const encoded = await encodePss(message, unhex(vector.salt), bits);
  const factor = blindWith(key, 1n, inverse).inverse;
  const blinding = blindWith(key, encoded, factor);
  assert.equal(hex(blinding.blinded), vector.blinded);
  assert.equal(blinding.inverse, inverse);
  assert.equal(hex(await finalize(key, message, unhex(vector.answer), blinding)), vector.signature);
});

for (const bits of [1024, 1025, 2048]) {
  test(`what was signed blindly is a signature of the platform, with ${bits} bits`, async () => {
    const { key, publicKey, answer } = signer(bits);
    const blinding = await blind(key, MESSAGE, new SystemCoins());
    const signature = await finalize(key, MESSAGE, answer(blinding.blinded), blinding);
    assert.ok(verify("sha384", MESSAGE, { key: publicKey, ...PSS }, signature));
    assert.ok(!(await isBlindSigned(key, utf8("another message"), signature)));
    assert.ok(!(await isBlindSigned(key, MESSAGE, signature.slice(1))));
    assert.ok(!(await isBlindSigned(key, MESSAGE, signature.map((byte, i) => (i === 70 ? byte ^ 1 : byte)))));
    assert.ok(!(await isBlindSigned(key, MESSAGE, new Uint8Array(widthOf(key)))));
    assert.ok(!(await isBlindSigned(key, MESSAGE, new Uint8Array(widthOf(key)).fill(255))));
  });
}

test("what the platform signs is accepted, with salts of the right length alone", async () => {
  const { key, privateKey } = signer(1024);
  assert.ok(await isBlindSigned(key, MESSAGE, sign("sha384", MESSAGE, { key: privateKey, ...PSS })));
  const shorter = sign("sha384", MESSAGE, { key: privateKey, ...PSS, saltLength: 20 });
  assert.ok(!(await isBlindSigned(key, MESSAGE, shorter)));
});

test("wrong answers and impossible keys are refused", async () => {
  const { key, answer } = signer(1024);
  const coins = new ReplayCoins(utf8("blinding"));
  const [first, second] = [await blind(key, MESSAGE, coins), await blind(key, MESSAGE, coins)];
  assert.notEqual(hex(first.blinded), hex(second.blinded));
  await assert.rejects(finalize(key, MESSAGE, answer(first.blinded), second), /no signature on what was blinded/);
  await assert.rejects(finalize(key, MESSAGE, new Uint8Array(127), first), /has 127 bytes, must have 128/);
  await assert.rejects(blind({ modulus: 187n, exponent: 3n }, MESSAGE, coins), /at least 784 bits/);
  await assert.rejects(blind({ ...key, exponent: 4n }, MESSAGE, coins), /odd, at least 3 and below/);
});

test("no function takes a key that the others refuse", async () => {
  const modulus = 2n ** 1023n + 1n;
  const keys = [
    { modulus: modulus + 1n, exponent: 3n },
    { modulus: -modulus, exponent: 3n },
    { modulus: 0n, exponent: 3n },
    { modulus: 187n, exponent: 3n },
    { modulus: 2n ** 8192n + 1n, exponent: 3n },
    { modulus, exponent: 1n },
    { modulus, exponent: -3n },
    { modulus, exponent: 2n ** 64n + 1n },
  ];
  const [bytes, coins] = [new Uint8Array(128), new ReplayCoins(utf8("keys"))];
  for (const key of keys) {
    await assert.rejects(blind(key, MESSAGE, coins), InvalidSpec);
    await assert.rejects(isBlindSigned(key, MESSAGE, bytes), InvalidSpec);
    await assert.rejects(finalize(key, MESSAGE, bytes, { blinded: bytes, inverse: 1n }), InvalidSpec);
  }
});
