/** What the survey page says about shuffling, apart from its looks. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { hindrance, power, waitsFor } from "../../src/tacit/dashboard/static/survey/shuffled.js";
import { speaker } from "../../src/tacit/dashboard/static/page/words.js";
import { CannotSeal, ProtocolViolation } from "../src/client/refusals.js";
import { TacitError } from "../src/errors.js";

const LANGUAGES = ["en", "de", "fr", "es"];

test("probabilities are written as people read them", () => {
  assert.deepEqual(["1e-9", "2.5e-10", "1e-30"].map(power), ["10⁻⁹", "2.5 · 10⁻¹⁰", "10⁻³⁰"]);
});

test("every reason for which nobody can answer is said in every language, and others are left to the caller", () => {
  const errors = [...["insecure", "browser", "mode"].map((reason) => new CannotSeal(/** @type {any} */ (reason))), new ProtocolViolation("x"), new TacitError("y")];
  for (const language of LANGUAGES) {
    const said = errors.map((error) => hindrance(error, speaker(language)));
    assert.equal(new Set(said).size, errors.length, language);
    assert.ok(said.every((words) => words && !/[{}]|hindered/.test(words)), language);
    assert.equal(hindrance(new TypeError("z"), speaker(language)), "");
  }
  assert.equal(new Set(LANGUAGES.map((language) => hindrance(errors[0], speaker(language)))).size, LANGUAGES.length);
});

test("shufflers that are waited for are called by their names", () => {
  const terms = { shufflers: [{ name: "One" }, { name: "Two" }, { name: "Three" }] };
  const words = (/** @type {string} */ reason) => waitsFor({ reason }, terms, speaker("en"));
  assert.match(words("shuffler_1: no reply; shuffler_3: status 503"), /from: One, Three\./);
  assert.match(words("collection abc: no session takes reports now; try again later"), /come back later/);
  assert.equal(words("sealing: this browser lacks X25519"), "sealing: this browser lacks X25519");
  assert.equal(words(""), "");
});
