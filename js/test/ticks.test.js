import assert from "node:assert/strict";
import { test } from "node:test";

import { asBudget } from "../src/numbers/budget.js";
import { Respondent, batchOf } from "../src/client/client.js";
import { charged, batchIdOf, emptyRecord, firstDayOf, fresh, nextSlot, refusal, slotOf, windowOf } from "../src/client/ticks.js";
import { read } from "./vectors.js";

const vectors = read("windows.json");
const documents = read("documents.json");
const { document, id } = documents.good.find(({ name }) => name === "windows of a day");
const DAY = 86_400_000;
const FIRST = Date.UTC(2030, 0, 7, 12);

test("batches that name their window are the published ones", () => {
  const asking = documents.good.filter(({ document: { windows } }) => windows);
  assert.equal(asking.length, 5);
  for (const { id: collection, cases } of asking) {
    for (const { batch, batch_json: twin } of cases) {
      const entry = { collection, batch: twin.batch, window: twin.window, row: null, ...twin.reports[0] };
      assert.equal(Buffer.from(batchOf(entry)).toString("hex"), batch);
    }
  }
});

test("slots and batch ids are the published ones", () => {
  for (const [per, slot] of vectors.slots) assert.equal(slotOf(vectors.secret, vectors.document, per), slot);
  for (const [window, batch] of vectors.batch_ids) assert.equal(batchIdOf(vectors.secret, vectors.document, window), batch);
});

test("dates are in the published windows", () => {
  for (const { every, first, windows, days } of vectors.calendars) {
    for (const [date, window] of windows) assert.equal(windowOf({ every, first }, date), window);
    for (const [window, from] of days) assert.equal(firstDayOf({ every, first }, window), from);
  }
});

for (const { name, account, documents: asking, events, born, secret, record, policy } of vectors.scenarios) {
  test(`a ledger decides as published: ${name}`, () => {
    let kept = emptyRecord();
    const seen = new Set();
    const days = [];
    for (const { document: which, window, today, reason } of events) {
      const { windows, epsilon, id: asked } = asking[which];
      const cost = asBudget(epsilon).declared;
      const [slot, before] = [slotOf(secret, asked, windows.per), seen.has(`${which} ${window}`)];
      assert.equal(refusal({ windows, account, epsilon: cost, window, today, born, slot, before, record: kept, policy, days }), reason);
      if (reason) continue;
      seen.add(`${which} ${window}`);
      kept = charged(kept, window, cost, account.run);
      days.push([today, cost.join("/")]);
    }
    // Exact fractions, in whichever terms.
    const value = (/** @type {string} */ text) => text.split("/").map(Number).reduce((a, b) => a / b);
    assert.deepEqual([kept.high, value(kept.spent)], [record.high, value(record.spent)]);
    assert.deepEqual(kept.charges.map(([w, e]) => [w, value(e)]), record.charges.map(([w, e]) => [w, value(e)]));
  });
}

/** A ledger in memory, changed by one at a time as under a lock. */
class MemoryWindows {
  kept = fresh();
  #last = Promise.resolve();

  change(decide) {
    const next = this.#last.then(() => {
      const copy = structuredClone(this.kept);
      const decided = decide(copy);
      this.kept = copy;
      return decided;
    });
    this.#last = next.catch(() => undefined);
    return next;
  }
}

/** A clock, a collector that answers as it is told, and tabs that share a ledger. */
function world() {
  const state = { now: FIRST - 60 * DAY, uploads: [], status: 201, store: new MemoryWindows() };
  const fetch = async (url, { body } = {}) => {
    if (!body) return new Response(JSON.stringify(document));
    state.uploads.push(Buffer.from(body));
    const text = state.status === 201 ? JSON.stringify({ accepted: 1, rejected: [], duplicate: false }) : "{}";
    return new Response(text, { status: state.status });
  };
  const tab = async (options = {}) => {
    const client = new Respondent({ storage: { getItem: () => null, setItem: () => undefined }, fetch, now: () => state.now });
    return client.join(`https://collector.example/c/${id}`, { store: state.store, ...options });
  };
  return { state, tab };
}

test("two tabs over sixty days, a reload and a cleared store never report twice in seven days", async () => {
  const { state, tab } = world();
  let tabs = [await tab(), await tab()];
  await tabs[0].view();
  const windows = [];
  for (let day = 0; day < 60; day += 1) {
    state.now = FIRST + day * DAY;
    if (day === 20) tabs = [await tab(), await tab()];
    // Cleared: the secret, the slot and the charges are gone, and the date is young.
    if (day === 35) state.store.kept = fresh();
    const ticks = await Promise.all(tabs.map((one) => one.tick("red")));
    const sent = ticks.filter(({ state: what }) => what === "sent");
    assert.ok(ticks.every(({ state: what }) => ["sent", "skipped", "pending"].includes(what)));
    if (sent.length) windows.push(sent[0].window);
  }
  assert.equal(state.uploads.length, windows.length);
  assert.ok(windows.length >= 6);
  for (const [i, window] of windows.slice(1).entries()) assert.ok(window - windows[i] >= 7);
  for (const [i, upload] of state.uploads.entries()) {
    assert.equal(upload.subarray(0, 4).toString(), "TCB2");
    assert.equal(upload.readUInt32LE(52), windows[i]);
  }
});

test("a report is sent with the same bytes until its window ends, and stays charged", async () => {
  const { state, tab } = world();
  const collection = await tab();
  await collection.view();
  state.status = 503;
  let [day, tick] = [0, { state: "skipped" }];
  for (; tick.state === "skipped"; day += 1) {
    state.now = FIRST + day * DAY;
    tick = await collection.tick("blue");
  }
  assert.equal(tick.state, "pending");
  for (let late = 0; late < 4; late += 1) {
    state.now = FIRST + (day + late) * DAY;
    await collection.flush();
  }
  assert.equal(new Set(state.uploads.map((one) => one.toString("hex"))).size, 1);
  assert.equal(state.uploads.length, 3);
  assert.equal(state.store.kept.entries[0].state, "expired");
  assert.equal((await collection.view()).spent, "1");
});

test("a policy of the host caps all accounts, and ledgers of before have no days yet", async () => {
  const { state, tab } = world();
  const collection = await tab({ policy: { days: 30, epsilon: "1" } });
  await collection.view();
  delete state.store.kept.days;
  const reasons = [];
  for (let day = 0; day < 60; day += 1) {
    state.now = FIRST + day * DAY;
    const { state: what, reason } = await collection.tick("red");
    if (what === "sent" || reason === "device_cap") reasons.push([day, reason]);
  }
  const slot = reasons[0][0];
  // A slot every seven days, of which every fifth is 30 days after the last.
  assert.deepEqual(reasons.map(([day]) => day), reasons.map((_, i) => slot + 7 * i));
  assert.deepEqual(reasons.map(([, reason]) => reason === ""), reasons.map((_, i) => i % 5 === 0));
  for (const policy of [{ days: 0, epsilon: "1" }, { days: 401, epsilon: "1" }, { days: 7, epsilon: "-1" }]) {
    await assert.rejects(tab({ policy }), { name: "InvalidSpec" });
  }
});

test("the owner sees what a run and all of life have cost, and the next slot", async () => {
  const { state, tab } = world();
  const collection = await tab();
  assert.equal((await collection.view()).next, null);
  state.now = FIRST;
  await collection.tick("red");
  const slot = slotOf(state.store.kept.secret, id, document.windows.per);
  const before = await collection.view();
  const due = slot === 0 ? document.windows.per : slot;
  assert.deepEqual([before.run, before.next], [slot === 0 ? "1" : "0", firstDayOf(document.windows, due)]);
  state.now = FIRST + due * DAY;
  await collection.tick("red");
  const { spent, next, runCap } = await collection.view();
  assert.deepEqual([Number(spent), next], [slot === 0 ? 2 : 1, firstDayOf(document.windows, due + document.windows.per)]);
  const [account] = await collection.client.accounts({ store: state.store });
  assert.deepEqual([account.name, account.spent, account.runCap, account.collections], ["daily", spent, runCap, [id]]);
  assert.deepEqual([account.collector, account.windows, account.every], ["https://collector.example", 7, "day"]);
});

for (const { asked, next } of vectors.next_slots) {
  test(`the next slot after window ${asked.window} is ${next}`, () => {
    const { windows, epsilon, ...rest } = asked;
    assert.equal(nextSlot({ ...rest, windows, epsilon: asBudget(epsilon).declared, before: false }), next);
  });
}

test("without locks, and for documents without windows, nothing is drawn", async () => {
  const { state, tab } = world();
  const collection = await tab();
  const { client } = collection;
  await assert.rejects(client.join(`https://collector.example/c/${id}`), /https or localhost/);
  await assert.rejects(client.answer(`https://collector.example/c/${id}`, { colour: "red" }), /take part with join/);
  await assert.rejects(collection.tick({ color: "red" }), { name: "InvalidValue" });
  assert.equal(state.uploads.length, 0);
});
