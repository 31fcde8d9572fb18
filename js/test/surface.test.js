/** What the package promises: its types name its exports, and its sources run in any browser. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";

import * as tacit from "../src/index.js";
import { KNOWN, kindsIn } from "../src/load.js";

/** @param {string} path below js */
const text = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const sources = readdirSync(new URL("../src/", import.meta.url), { encoding: "utf8", recursive: true })
  .filter((path) => path.endsWith(".js"))
  .sort();
const types = text("index.d.ts");
const declarations = types + text("types/domains.d.ts");

/** @param {string} path @returns {string} the code without comments, strings and regular expressions */
const code = (path) =>
  text(path)
    .replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "")
    .replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""')
    .replace(/`(?:[^`\\$]|\\.|\$(?!\{))*`/g, '""');

/** @param {string} declared @returns {string[]} the names of the values, not the types, that a declaration exports */
function exportsOf(declared) {
  const own = [...declared.matchAll(/^export (?:abstract )?(?:class|function|const) (\w+)/gm)].map(([, name]) => name);
  const passed = [...declared.matchAll(/^export \{ (.+) \}/gm)].flatMap(([, names]) => names.split(", "));
  return [...own, ...passed].sort();
}

/** @param {string} name @returns {string} the declaration of a class */
const declarationOf = (name) => declarations.split(`export class ${name} `)[1]?.split("\n}")[0] ?? "";

test("index.d.ts names exactly the exports of index.js", () => {
  assert.deepEqual(exportsOf(types), Object.keys(tacit).sort());
});

test("every kind, family and domain is exported under its own name", () => {
  for (const one of [...tacit.KINDS, ...tacit.FAMILIES, ...tacit.DOMAINS]) {
    assert.equal(/** @type {any} */ (tacit)[one.name], one, one.name);
  }
});

test("the declaration of every kind and domain states its kind and takes its fields, no others", () => {
  for (const { name, kind, fields } of [...tacit.KINDS, ...tacit.FAMILIES, ...tacit.DOMAINS]) {
    const declared = declarationOf(name);
    assert.match(declared, new RegExp(`static readonly kind: [^;]*"${kind}"`), name);
    const [, taken = ""] = /constructor\(fields: \{ (.*) \}\);/.exec(declared) ?? [];
    assert.deepEqual([...taken.matchAll(/(\w+): /g)].map(([, field]) => field), [...fields], name);
  }
});

/** Whether a module names another one of the package. @param {string} source @param {string} path */
const isOurs = (source, path) => sources.includes(posix.join(posix.dirname(source), path));

test("no source imports anything from outside the folder", () => {
  for (const source of sources) {
    const imported = [...text(`src/${source}`).matchAll(/^(?:import|export)\b(?:[^"\n]* from)? "([^"]+)"/gm)];
    for (const [, path] of imported) assert.ok(isOurs(source, path), `${source}: ${path}`);
    for (const [, path] of text(`src/${source}`).matchAll(/\bimport\("([^"]+)"\)(?=[\],])/g)) {
      assert.ok(isOurs(source, path), `${source}: ${path}`);
    }
    // Kinds and sealing are loaded in one place, by names that are written there.
    const dynamic = source === "load.js" ? /\bimport\s*\((?!"")|\brequire\s*\(/ : /\bimport\s*\(|\brequire\s*\(/;
    assert.doesNotMatch(code(`src/${source}`), dynamic, source);
  }
});

test("every kind and family can be loaded, one by one, and nothing else", async () => {
  const all = [...tacit.KINDS, ...tacit.FAMILIES];
  assert.deepEqual([...KNOWN].sort(), all.map(({ kind }) => kind).sort());
  for (const one of all) assert.deepEqual(await kindsIn({ kind: one.kind }), [one]);
  assert.deepEqual(await kindsIn({ kind: "constructor", inner: [{ kind: 5 }, { kind: "tree" }, "grr"] }), [tacit.Tree]);
});

test("no source uses what only Node has, or floating-point randomness", () => {
  const foreign =
    /\b(?:process|Buffer|global|__dirname|__filename|setImmediate|module\.exports|window\.(?!js)|document\.(?!json)|XMLHttpRequest|console|Math\.random|eval|Function)\b/;
  for (const source of sources) assert.doesNotMatch(code(`src/${source}`), foreign, source);
});

test("the client and the kit for applications alone touch the outside world", () => {
  const outside = /\b(?:Date|fetch|localStorage|navigator|location|setTimeout|addEventListener)\b/;
  const touching = sources.filter((source) => outside.test(code(`src/${source}`)));
  // Windows are decided by a date: of the device in ticks.js, of the document in windows.js. Looking a receipt up in a
  // long list lets the page go on in between, by setTimeout.
  assert.deepEqual(touching, ["client/client.js", "client/ticks.js", "documents/windows.js", "sealed/inclusion.js", "telemetry.js"]);
});

test("the bundle exports a part of the package", async () => {
  const bundled = await import("../src/browser.js");
  for (const [name, value] of Object.entries(bundled)) assert.equal(/** @type {any} */ (tacit)[name], value, name);
});

test("a private value reaches no error message of any kind", () => {
  const secret = 918273645546372;
  const level = { heights: [1], mechanisms: [{ kind: "grr", epsilon: "1", size: 2 }], weights: [1] };
  for (const spec of [
    { kind: "grr", epsilon: "1", size: 10 },
    { kind: "onebit", epsilon: "1", top: 10 },
    { kind: "dbitflip", epsilon: "1", size: 10, sampled: 2 },
    { kind: "hrr_signed", epsilon: "1", size: 10 },
    { kind: "one_of", epsilon: "1", payload_bytes: 1, family: { kind: "tree", size: 10, fanout: 5, ...level } },
    { kind: "all_of", epsilon: "1", state: "joint", members: [{ kind: "grr", epsilon: "1", size: 10 }] },
  ]) {
    const value = spec.kind === "all_of" ? [secret] : secret;
    assert.throws(() => tacit.privatizeOne(spec, value), (error) => {
      return error instanceof tacit.InvalidValue && !error.message.includes(String(secret));
    });
  }
});
