/**
 * The session of a shuffled collection, verified against its document: signatures of all parties by the identities
 * that the document pins, agreement with its terms, and what can be checked of the certificate without an accountant.
 * The twin of `tacit.wire.sessions`, which computes the certificate again; here it stays a claim, that shufflers have
 * computed again before they signed.
 *
 * @typedef {{operator: string, url: string, identity: string, seal_key: string}} SessionParty
 * @typedef {object} Session
 * @property {string} id SHA-256 of the canonical document, in hexadecimal
 * @property {string} mode
 * @property {SessionParty} collector
 * @property {SessionParty[]} shufflers
 * @property {import("../client/report_words.js").WordRule} words
 * @property {number} closes seconds since 1970
 * @property {{operator: string, url: string} | null} relay
 * @property {any} certificate
 */

import { canonical, digest } from "../numbers/canonical.js";
import { areDifferent, isObject, matches } from "../numbers/checks.js";
import { areIntegers } from "../numbers/exact.js";
import { subtle } from "./hpke.js";
import { CannotSeal, ProtocolViolation } from "../client/refusals.js";
import { ruleOf } from "../client/report_words.js";
import { unhex, utf8 } from "../numbers/sha256.js";

const DAY_SECONDS = 86400;
const KEY = /^[0-9a-f]{64}$/;

/** @param {unknown} holds @param {string} what is wrong if it does not @returns {asserts holds} */
export function demand(holds, what) {
  if (!holds) throw new ProtocolViolation(`${what}; take no part`);
}

/** The canonical form of what came from outside, which may have none. @param {unknown} value @returns {string} */
function formOf(value) {
  try {
    return canonical(value);
  } catch {
    throw new ProtocolViolation("session: a value has no canonical form; take no part");
  }
}

/** @param {unknown} one @param {unknown} other @returns {boolean} whether two JSON values are the same */
const isSame = (one, other) => formOf(one ?? null) === formOf(other ?? null);

/**
 * Whether a signature on a document is by the holder of an identity, for this purpose.
 * @param {string} identity
 * @param {string} label
 * @param {unknown} document
 * @param {unknown} signature in hexadecimal
 * @returns {Promise<boolean>}
 */
export async function isSigned(identity, label, document, signature) {
  if (!matches(signature, /^[0-9a-f]{128}$/)) return false;
  const bytes = utf8(`tacit ${label}\0${formOf(document)}`);
  try {
    const key = await subtle().importKey("raw", unhex(identity), "Ed25519", false, ["verify"]);
    return await subtle().verify("Ed25519", key, unhex(signature), bytes);
  } catch {
    return false;
  }
}

/** How many of r shufflers the promise takes to be honest. @param {{mode: string, shufflers: unknown[]}} terms */
export const honestOf = ({ mode, shufflers: { length } }) => (isChain(mode) ? 1 : (length + 1) / 2);

/** Whether shufflers pass on onions, so that only the first of them takes uploads. @param {string} mode */
export const isChain = (mode) => mode === "relay" || mode === "ss";

/** The fakes that honest shufflers draw. @param {any} terms */
const fakesOf = (terms) =>
  terms.mode === "osh-z" ? terms.fakes : honestOf(terms) * Math.floor(terms.fakes / terms.shufflers.length);

/** What a session must say, given its document. @param {import("../documents/document.js").Collection} collection */
function agreed({ id, shuffle: terms, mechanism, retention_days: days }) {
  const { mode, minimum, maximum, spot_checks, together, relay } = terms;
  return {
    ...{ collection: id, mode, words: ruleOf(mechanism), n_min: minimum, n_max: maximum, fakes: fakesOf(terms), spot_checks },
    ...{ retention_seconds: DAY_SECONDS * days, claims_amplification: together.length === 0 },
    ...{ together, relay: relay && { operator: relay.name, url: relay.url }, dgk: null },
  };
}

/** @param {any} stated @param {any} pinned @param {string} who */
function checkParty(stated, { name, url, identity }, who) {
  const { seal_key: key, ...rest } = isObject(stated) ? stated : {};
  demand(rest.identity === identity, `session: ${who} has another key than the document pins`);
  // The document has no address of the collector, which only shufflers write to.
  const same = isSame(rest, { identity, operator: name, url: url ?? rest.url });
  demand(same && matches(key, KEY), `session: ${who} is another party than in the document`);
}

/** Exact fractions of decimal text such as 0.25 or 2.5e-10. @param {unknown} text @returns {[bigint, bigint]} */
function fraction(text) {
  const [, whole, part = "", exponent = "0"] = /^(\d{1,3})(?:\.(\d{1,60}))?(?:e-(\d\d?))?$/.exec(String(text)) ?? [];
  demand(whole, "certificate: a number is not decimal text");
  return [BigInt(whole + part), 10n ** BigInt(part.length + Number(exponent))];
}

/** @param {[bigint, bigint][]} numbers @returns {boolean} whether none is below the one before */
const isGrowing = (numbers) => numbers.every(([top, bottom], i) => i === 0 || numbers[i - 1][0] * bottom <= top * numbers[i - 1][1]);

/** @param {any} given @param {import("../documents/document.js").Collection} collection */
function checkCertificate(given, { shuffle: terms, mechanism }) {
  const { kind, digest: id, budget } = mechanism;
  const { minimum: n_min, together } = terms;
  const facts = Object.entries({ kind, digest: id, n_min, fragmented: false });
  demand(facts.every(([name, fact]) => given?.[name] === fact), "certificate: it is about something else");
  demand(areIntegers([given.fakes], 0, fakesOf(terms)), "certificate: it counts on more fakes than are drawn");
  const [delta, wanted] = [fraction(given.delta), fraction(terms.delta)];
  demand(isGrowing([delta, wanted, delta]), "certificate: its delta is not that of the document");
  const [central, others, local] = [given.epsilon, given.epsilon_others, given.local_epsilon].map(fraction);
  const grows = isGrowing([central, others, local]) && isGrowing([budget.declared, local]);
  demand(grows, "certificate: epsilons must grow with what an adversary holds, up to the local one");
  const honest = together.length === 0 || isGrowing([local, central]);
  demand(honest, "certificate: one party runs several roles, so that only the local epsilon holds");
}

/**
 * Everybody signs by the pinned key, never by one that came along: that would prove nothing.
 * @param {any} session
 * @param {any} signatures
 * @param {any[]} pinned
 */
export async function checkSignatures(session, signatures, pinned) {
  const given = new Map((Array.isArray(signatures) ? signatures : []).map((one) => [one?.by, one?.signature]));
  for (const [i, { identity }] of pinned.entries()) {
    const who = i ? `shuffler_${i}` : "collector";
    demand(await isSigned(identity, "session", session, given.get(who)), `session: it is not signed by ${who}`);
  }
}

/** One operator under two names would be one party that counts twice, unless the document says so. @param {any} session */
function checkApart({ collector, shufflers, relay, together }) {
  const parties = [collector, ...shufflers];
  const keys = parties.flatMap(({ identity, seal_key: key }) => [identity, key]);
  demand(areDifferent(keys), "session: every party must have keys of its own");
  const roles = parties.map(({ operator }, i) => [i ? `shuffler_${i}` : "collector", operator]);
  const all = relay ? [...roles, ["relay", relay.operator]] : roles;
  for (const [role, operator] of all) {
    const same = all.filter(([other, its]) => other !== role && its === operator);
    const said = same.every(([other]) => together.some((/** @type {string[]} */ group) => group.includes(role) && group.includes(other)));
    demand(said, `session: ${role} has the operator of another role, and the document does not say so`);
  }
}

/** Refuse a mode that this client cannot seal for. @param {import("../documents/document.js").Collection} collection */
export function checkMode({ shuffle: { mode } }) {
  if (mode === "peos-dgk") throw new CannotSeal("mode");
}

/**
 * Verify a session as it was fetched; ProtocolViolation if the document does not allow it.
 * @param {import("../documents/document.js").Collection} collection
 * @param {any} published
 * @returns {Promise<Session>}
 */
export async function checkSession(collection, published) {
  checkMode(collection);
  const { shuffle: terms } = collection;
  const session = published?.session;
  const [wanted, parties] = [agreed(collection), [terms.collector, ...terms.shufflers]];
  const fields = [...Object.keys(wanted), "collector", "shufflers", "closes", "phase_seconds", "certificate"];
  const known = isObject(session) && isSame(Object.keys(session).sort(), fields.sort());
  demand(known && Array.isArray(session.shufflers), "session: fields are missing or unknown");
  demand(session.shufflers.length + 1 === parties.length, "session: it has other shufflers than the document");
  parties.forEach((party, i) =>
    checkParty(i ? session.shufflers[i - 1] : session.collector, party, i ? `shuffler_${i}` : "the collector"),
  );
  await checkSignatures(session, published.signatures, parties);
  for (const [name, value] of Object.entries(wanted)) {
    demand(isSame(session[name], value), `session: ${name} is not what the document says`);
  }
  demand(areIntegers([session.closes, session.phase_seconds], 0, 2 ** 53 - 1), "session: its times are no integers");
  checkApart(session);
  checkCertificate(session.certificate, collection);
  return { ...session, id: digest(session) };
}
