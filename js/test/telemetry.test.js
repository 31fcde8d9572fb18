/** What a user decides is what happens: nothing, kept to look at, or sent. */

import assert from "node:assert/strict";
import fs, { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { platform } from "node:process";
import { mock, test } from "node:test";

import { Respondent } from "../src/client/client.js";
import { FileStorage } from "../node/file_storage.js";
import { Telemetry } from "../src/telemetry.js";
import { read } from "./vectors.js";

const GOOD = read("documents.json").good.filter(({ document: { shuffle, rows } }) => !shuffle && !rows);
const [first, second] = GOOD;
const answersOf = (one) => one.cases[0].answers;

class Storage {
  items = new Map();
  getItem = (key) => this.items.get(key) ?? null;
  setItem = (key, value) => void this.items.set(key, value);
}

/** A kit over a collector that is there or not; what it was sent is noted. */
function kit({ storage = new Storage(), offline = () => false, refused = () => false } = {}) {
  const sent = [];
  const fetch = async (url, { body } = {}) => {
    if (offline()) throw new TypeError("offline");
    const found = GOOD.find(({ id }) => url.includes(id));
    if (url.endsWith("document.json")) return new Response(JSON.stringify(found.document));
    sent.push(Buffer.from(body).toString("hex"));
    return new Response(JSON.stringify({ accepted: 1, rejected: [], duplicate: false }), { status: 201 });
  };
  const respondent = new Respondent({ storage, fetch, attempts: 1, sleep: async () => {} });
  return { telemetry: new Telemetry({ storage, respondent, refused }), sent, storage };
}

const address = ({ id }) => `https://collector.example/c/${id}`;

test("local only draws and shows, off does nothing, on sends; what was held waits to be released", async () => {
  const { telemetry, sent, storage } = kit();
  assert.equal(telemetry.mode, "local");
  const held = await telemetry.report(address(first), answersOf(first));
  assert.equal(held.state, "held");
  assert.deepEqual(sent, []);
  const [shown] = telemetry.shown();
  assert.equal(shown.state, "held");
  assert.equal(shown.server, "https://collector.example");
  assert.match(shown.report, /^[0-9a-f]+$/);
  telemetry.mode = "off";
  assert.equal(await telemetry.report(address(second), answersOf(second)), null);
  assert.deepEqual([await telemetry.release(), await telemetry.flush()], [[], []]);
  assert.equal(kit({ storage }).telemetry.mode, "off");
  telemetry.mode = "on";
  assert.equal((await telemetry.report(address(second), answersOf(second))).state, "sent");
  assert.equal(sent.length, 1);
  assert.equal((await telemetry.report(address(second), answersOf(second))).state, "sent");
  assert.equal(sent.length, 1);
  assert.deepEqual((await telemetry.release()).map(({ state }) => state), ["sent"]);
  assert.equal(sent.length, 2);
});

test("without a network a report waits, and the same bytes are sent later", async () => {
  let offline = false;
  const { telemetry, sent } = kit({ offline: () => offline });
  telemetry.mode = "on";
  const collection = await telemetry.respondent.open(address(first));
  offline = true;
  const waiting = await telemetry.report(address(first), answersOf(first), { collection });
  assert.equal(waiting.state, "pending");
  offline = false;
  assert.deepEqual((await telemetry.flush()).map(({ state }) => state), ["sent"]);
  assert.ok(sent[0].includes(telemetry.shown()[0].report));
});

test("no decision, a wrong one, and what a browser says", () => {
  const { telemetry, storage } = kit();
  assert.throws(() => (telemetry.mode = "maybe"), /on, local, off/);
  storage.setItem("tacit-telemetry", "yes please");
  assert.equal(telemetry.mode, "off");
  storage.setItem("tacit-telemetry", "on");
  assert.equal(kit({ storage, refused: () => true }).telemetry.mode, "off");
  assert.equal(new Telemetry({ storage }).mode, "on");
});

test("outside of a browser a storage is asked for, and a file is one", async () => {
  if (!globalThis.localStorage) assert.throws(() => new Telemetry(), /FileStorage/);
  const folder = mkdtempSync(join(tmpdir(), "tacit-"));
  const file = join(folder, "state", "telemetry.json");
  const { telemetry } = kit({ storage: new FileStorage(file) });
  telemetry.mode = "on";
  assert.equal((await telemetry.report(address(first), answersOf(first))).state, "sent");
  const again = kit({ storage: new FileStorage(file) });
  assert.equal(again.telemetry.mode, "on");
  assert.equal((await again.telemetry.report(address(first), answersOf(first))).state, "sent");
  assert.deepEqual(again.sent, []);
  writeFileSync(file, "{");
  assert.throws(() => again.telemetry.mode, /cannot be read/);
  rmSync(folder, { recursive: true });
});

test("what a file keeps is on the disk before it is told, whenever the power goes", () => {
  const folder = mkdtempSync(join(tmpdir(), "tacit-"));
  const file = join(folder, "telemetry.json");
  const [done, opened] = [[], new Map()];
  const { openSync, fsyncSync, renameSync } = fs;
  mock.method(fs, "openSync", (path, ...rest) => {
    const number = openSync(path, ...rest);
    opened.set(number, path);
    return number;
  });
  mock.method(fs, "fsyncSync", (number) => (done.push(opened.get(number)), fsyncSync(number)));
  mock.method(fs, "renameSync", (from, to) => (done.push("renamed"), renameSync(from, to)));
  syncBuiltinESMExports();
  try {
    new FileStorage(file).setItem("a", "1");
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
  assert.deepEqual(done, [`${file}.part`, "renamed", ...(platform === "win32" ? [] : [dirname(file)])]);
  assert.equal(new FileStorage(file).getItem("a"), "1");
  rmSync(folder, { recursive: true });
});
