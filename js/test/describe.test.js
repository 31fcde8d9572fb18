/** What the survey page says of a report: probabilities that are never rounded away, and how many answers a code fits. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { chances } from "../../src/tacit/dashboard/static/page/chances.js";
import { describe } from "../../src/tacit/dashboard/static/survey/describe.js";
import { speaker } from "../../src/tacit/dashboard/static/page/words.js";
import { loadDevice } from "../src/index.js";

const LANGUAGES = ["en", "de", "es", "fr"];

const grr = (epsilon, size) => loadDevice({ kind: "grr", epsilon: String(epsilon), size });
const said = (language, key, device) => speaker(language)(key, { value: "x", ...chances(device) });
const shown = (device) => said("en", "saysValue", device).match(/of (.+) %, .* with (.+) %/).slice(1);

test("no probability is rounded to nothing or to certainty, and the two differ", async () => {
  assert.deepEqual(shown(await grr(8, 3)), ["99.933", "0.034"]);
  assert.deepEqual(shown(await grr(1, 2)), ["73", "27"]);
  const [own, other] = shown(await grr("0.01", 2));
  assert.deepEqual([own, other], ["50.25", "49.75"]);
  assert.deepEqual(shown(await grr(16, 3)), ["99.999977", "0.000011"]);
  assert.deepEqual(shown(await grr(24, 3)), ["more than 99.999999", "less than 0.000001"]);
  assert.match(said("de", "saysValue", await grr(8, 3)), /von 99,933 % und jede andere mit 0,034 %/);
  assert.match(said("es", "saysValue", await grr(24, 3)), /de más de 99,999999 %, .* con menos de 0,000001 %/);
});

const words = (device, language) => {
  const text = { kind: "text" };
  const collection = { policy: "single", questions: [{ domain: text }], mechanism: device };
  return describe(collection, { member: 0, report: "000102030405" }, speaker(language), String)[0];
};

const olh = (size, buckets) => loadDevice({ kind: "olh", epsilon: "1", size, buckets, state: "counts" });

test("how many answers a code fits is said as it is", async () => {
  assert.match(words(await olh(19683, 65536), "en"), /fits hardly more than one answer/);
  assert.match(words(await olh(100, 50), "en"), /fits only a few answers/);
  assert.match(words(await olh(19683, 4), "en"), /fits many different answers/);
  for (const language of LANGUAGES) {
    const all = await Promise.all([[19683, 65536], [100, 50], [19683, 4]].map(([d, g]) => olh(d, g)));
    assert.equal(new Set(all.map((device) => words(device, language))).size, 3);
  }
  // Nothing is claimed of a code whose rule this page does not know.
  assert.equal(words({ kind: "she", size: 3, odds: 2n ** 65n }, "en"), "It is a scrambled code of 6 bytes.");
});
