import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes, randomInt } from "node:crypto";
import { test } from "node:test";

import { hex, hmac, sha256, utf8 } from "../src/numbers/sha256.js";
import { unhex } from "./vectors.js";

test("SHA-256 of the examples of FIPS 180", () => {
  const examples = {
    "": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    abc: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq:
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ["a".repeat(1000000)]: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
  };
  for (const [message, digest] of Object.entries(examples)) assert.equal(hex(sha256(utf8(message))), digest);
});

test("SHA-256 agrees with the platform at every length around the padding", () => {
  for (let length = 0; length < 200; length += 1) {
    const message = Uint8Array.from({ length }, (_, i) => (i * 167 + length) & 255);
    assert.equal(hex(sha256(message)), createHash("sha256").update(message).digest("hex"));
  }
});

test("HMAC of the examples of RFC 4231", () => {
  const examples = [
    ["0b".repeat(20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"],
    [hex(utf8("Jefe")), "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"],
    [
      "aa".repeat(131),
      "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ],
  ];
  for (const [key, message, expected] of examples) assert.equal(hex(hmac(unhex(key), utf8(message))), expected);
});

test("HMAC agrees with the platform for keys around the block size", () => {
  for (let length = 60; length < 70; length += 1) {
    const key = new Uint8Array(length).fill(length);
    const expected = createHmac("sha256", key).update("message").digest("hex");
    assert.equal(hex(hmac(key, utf8("message"))), expected);
  }
});

test("SHA-256 and HMAC agree with the platform on random messages and keys", () => {
  for (let i = 0; i < 200; i += 1) {
    const [key, message] = [randomBytes(randomInt(200)), randomBytes(randomInt(2000))];
    const at = `key ${hex(key)} message ${hex(message)}`;
    assert.equal(hex(sha256(message)), createHash("sha256").update(message).digest("hex"), at);
    assert.equal(hex(hmac(key, message)), createHmac("sha256", key).update(message).digest("hex"), at);
  }
});

test("hashing leaves the message and the key as they were", () => {
  const [key, message] = [new Uint8Array(100).fill(1), new Uint8Array(100).fill(2)];
  hmac(key, message);
  assert.ok(key.every((byte) => byte === 1) && message.every((byte) => byte === 2));
});
