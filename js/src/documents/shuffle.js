/**
 * The terms of a shuffled collection: who takes part, what each of them is, and what is claimed of them together.
 * The twin of `tacit.wire.shuffled`; sealing reports for shufflers is no part of it.
 */

import { areDifferent, insist, isRising, matches, spans } from "../numbers/checks.js";
import { listed } from "../domains/domain.js";
import { areIntegers } from "../numbers/exact.js";
import { checkFields } from "../nested.js";

const WHO = "document.shuffle";
const MAX_REPORTS = 1e8;
const MAX_URL = 200;

const ODD = [3, 5, 7, 9];
/** How reports are shuffled, and how many shufflers that takes. @type {Map<unknown, number[]>} */
const MODES = new Map([
  ["relay", [1]],
  ["ss", [2, 3, 4, 5, 6, 7, 8, 9]],
  ["osh", ODD],
  ["osh-z", ODD],
  ["peos-dgk", ODD],
]);

const LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
const PORT = "([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d\\d|655[0-2]\\d|6553[0-5])";
/** The address of a service in its one form: a port that goes without saying is not written. */
const ADDRESS = new RegExp(
  `^(https://${LABEL}(\\.${LABEL})*(:(?!443(/|$))${PORT})?` +
    `|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:(?!80(/|$))${PORT})?)(/[\\w-]+)*$`,
);

/** Rules for the fields of a party. @type {Record<string, [(value: unknown) => boolean, string]>} */
const RULES = {
  identity: [(value) => matches(value, /^[0-9a-f]{64}$/), "an Ed25519 public key, 64 lower-case hexadecimal digits"],
  name: [(value) => spans(value, 100), "text of 1 to 100 characters"],
  url: [(value) => matches(value, ADDRESS) && value.length <= MAX_URL, 'an address such as "https://shuffler.example"'],
};

/** @param {any} party @param {string} where @param {string[]} fields in order */
function checkParty(party, where, fields) {
  checkFields(where, fields, party);
  for (const name of fields) insist(RULES[name][0](party[name]), `${where}.${name}`, RULES[name][1]);
}

/** @param {any} terms */
function checkParties({ mode, collector, relay, shufflers: given }) {
  checkParty(collector, `${WHO}.collector`, ["identity", "name"]);
  if (relay !== null || mode === "relay") checkParty(relay, `${WHO}.relay`, ["name", "url"]);
  const [shufflers, counts] = [listed(given, WHO, "shufflers"), MODES.get(mode) ?? []];
  insist(counts.includes(shufflers.length), `${WHO}.shufflers`, `${counts.join(" or ")} parties in this mode`);
  const fields = ["identity", "name", "url"];
  shufflers.forEach((party, i) => checkParty(party, `${WHO}.shufflers[${i}]`, fields));
  for (const name of fields) {
    const others = name === "identity" ? [collector] : [];
    insist(areDifferent([...shufflers, ...others].map((party) => party[name])), WHO, `of parties whose ${name} differs`);
  }
}

/**
 * Groups of roles that one party runs: each sorted, none in two groups, groups in the order of their first roles.
 * @param {any} terms
 */
function checkTogether({ together, relay, shufflers }) {
  const hops = [...shufflers.keys()].map((i) => `shuffler_${i + 1}`);
  const roles = ["collector", ...(relay ? ["relay"] : []), ...hops];
  const groups = listed(together, WHO, "together").map((group) => listed(group, WHO, "a group"));
  const named = groups.flat();
  // Names before their order: values of other types cannot all be compared.
  const known = named.every((role) => roles.includes(role)) && areDifferent(named);
  const sorted = known && groups.every((group) => group.length > 1 && isRising(group)) && isRising(groups.map(([first]) => first));
  insist(sorted, `${WHO}.together`, `sorted groups of two or more of the roles ${roles.join(", ")}, each role in one at most`);
}

/**
 * Refuse terms that cannot be.
 * @param {any} terms
 */
export function checkTerms(terms) {
  const fields = ["collector", "delta", "fakes", "maximum", "minimum", "mode", "relay", "shufflers", "spot_checks", "together"];
  checkFields(WHO, fields, terms);
  const { delta, fakes, maximum, minimum, mode, spot_checks: checks } = terms;
  insist(MODES.has(mode), `${WHO}.mode`, `one of ${[...MODES.keys()].join(", ")}`);
  checkParties(terms);
  insist(areIntegers([minimum], 2, MAX_REPORTS), `${WHO}.minimum`, "an integer from 2 to 10^8");
  insist(areIntegers([maximum], minimum, MAX_REPORTS), `${WHO}.maximum`, "an integer from minimum to 10^8");
  insist(areIntegers([fakes], 0, MAX_REPORTS), `${WHO}.fakes`, "an integer from 0 to 10^8");
  insist(areIntegers([checks], 0, 1e4), `${WHO}.spot_checks`, "an integer from 0 to 10^4");
  const isDelta = matches(delta, /^[1-9](\.\d{0,16}[1-9])?e-([1-9]|[12]\d|30)$/);
  insist(isDelta, `${WHO}.delta`, 'a probability in scientific form such as "2.5e-10"');
  checkTogether(terms);
}

/**
 * Refuse a document whose reports cannot be shuffled under its terms.
 * @param {any} document
 * @param {import("../base.js").Device} mechanism
 */
export function checkShuffled({ shuffle, rows, plan, policy, minimum_cohort: cohort }, mechanism) {
  checkTerms(shuffle);
  insist(rows === null && plan === null, "document", "without rows and without a plan where reports are shuffled");
  insist(policy === "single", "document.policy", '"single" where reports are shuffled');
  insist(mechanism.fitsWord, "document.mechanism", "of a kind whose reports fit the 64-bit word that shufflers pass on");
  insist(cohort <= shuffle.minimum, "document.minimum_cohort", "at most shuffle.minimum");
}
