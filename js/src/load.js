/**
 * Kinds that are loaded when a document needs them, each module once: a page fetches the mechanisms that its document
 * names and no others.
 */

import { makeDevice } from "./base.js";
import { isObject } from "./numbers/checks.js";
import { InvalidSpec, TacitError } from "./errors.js";

/** Which sources these modules were made of; the bundler writes their digest here and into every module of kinds. */
const BUILD = "";

/** The kinds of mechanisms and families, and the module that has them. @type {[string, () => Promise<any>][]} */
const MODULES = [
  // The lists of kinds begin: tools/make_lists.py writes them.
  ["grr", () => import("./kinds/grr.js")],
  ["sue oue rue the", () => import("./kinds/unary.js")],
  ["blh olh flh rmp", () => import("./kinds/local_hash.js")],
  ["hrr hrr_t hrr_subspace hrr_signed", () => import("./kinds/hadamard.js")],
  ["ss cbr abr", () => import("./kinds/blocks.js")],
  ["brappor rappor", () => import("./kinds/rappor.js")],
  ["cms hcms", () => import("./kinds/sketch.js")],
  ["she dlap", () => import("./kinds/laplace.js")],
  ["onebit", () => import("./kinds/mean.js")],
  ["sw", () => import("./kinds/square_wave.js")],
  ["dbitflip", () => import("./kinds/bit_flip.js")],
  ["rounded grid", () => import("./kinds/grid.js")],
  ["one_of all_of questions", () => import("./kinds/compose.js")],
  ["memo layered", () => import("./kinds/memo.js")],
  ["tree_steps", () => import("./kinds/steps.js")],
  ["padded set_size ticks", () => import("./kinds/sets.js")],
  ["tree", () => import("./kinds/levels.js")],
  ["views coefficients", () => import("./kinds/marginals.js")],
  // The lists of kinds end.
];

/** Every kind that can be loaded. */
export const KNOWN = MODULES.flatMap(([kinds]) => kinds.split(" "));

/** The names of all kinds in a spec, those inside it included. @param {any} spec @returns {any[]} */
function namesIn(spec) {
  if (!isObject(spec) && !Array.isArray(spec)) return [];
  const inside = Object.values(spec).flatMap(namesIn);
  return Object.hasOwn(spec, "kind") ? [/** @type {any} */ (spec).kind, ...inside] : inside;
}

/**
 * The classes of all kinds in a spec. A name that is unknown is left out: whoever builds the spec refuses it.
 * @param {any} spec
 * @returns {Promise<any[]>}
 */
export async function kindsIn(spec) {
  const names = new Set(namesIn(spec));
  const needed = MODULES.filter(([kinds]) => kinds.split(" ").some((kind) => names.has(kind)));
  const modules = await Promise.all(needed.map(([kinds, load]) => fetched(load, `the kinds ${kinds.replaceAll(" ", ", ")}`)));
  // A base class of a family has the kind of its own base class.
  const isNeeded = (/** @type {any} */ one) => Object.hasOwn(one, "kind") && names.has(one.kind);
  return modules.flatMap((module) => Object.values(module)).filter(isNeeded);
}

/** A module of the same build as this one. @param {() => Promise<any>} load @param {string} what */
async function fetched(load, what) {
  const loaded = await load().catch(() => {
    throw new TacitError(`the module of ${what} cannot be loaded; try again later`);
  });
  if ((loaded.build ?? BUILD) === BUILD) return loaded;
  throw new TacitError(`the module of ${what} is of another version than this script; load the page again`);
}

/** What seals reports for shufflers. @returns {Promise<typeof import("./sealed/sealing.js")>} */
export const loadSealing = () => fetched(() => import("./sealed/sealing.js"), "sealing");

/** What takes part in collections that ask again and again. @returns {Promise<typeof import("./client/ticks.js")>} */
export const loadTicks = () => fetched(() => import("./client/ticks.js"), "windows");

/** What gets anonymous tokens, and reads documents that ask for some. @returns {Promise<typeof import("./client/tokens.js")>} */
export const loadTokens = () => fetched(() => import("./client/tokens.js"), "tokens");

/**
 * The device half of a wire spec, with the kinds that it needs.
 * @param {any} spec
 * @returns {Promise<import("./base.js").Device>}
 */
export async function loadDevice(spec) {
  return makeDevice(spec, await kindsIn(spec));
}
