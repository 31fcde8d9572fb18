/** What the survey page says about a shuffled collection: what that adds, whom one has to trust, what remains if not. */

import { h } from "../page/dom.js";

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A probability in scientific form as people write it: 2.5e-10 becomes 2.5 · 10⁻¹⁰. @param {string} delta */
export function power(delta) {
  const [digits, exponent] = delta.split("e-");
  const raised = `10⁻${[...exponent].map((digit) => SUPERSCRIPTS[Number(digit)]).join("")}`;
  return digits === "1" ? raised : `${digits} · ${raised}`;
}

/** Whether shufflers pass reports on one after the other. @param {any} terms */
const isChain = ({ mode }) => mode === "ss" || mode === "relay";

/** How many shufflers have to be honest. @param {any} terms */
const honest = (terms) => (isChain(terms) ? 1 : (terms.shufflers.length + 1) / 2);

/** @param {any} terms @param {(key: string, values?: any) => string} say */
function how(terms, say) {
  const { mode, shufflers, fakes } = terms;
  const way = mode === "relay" ? "shuffle_relay" : isChain(terms) ? "shuffle_layers" : "shuffle_shares";
  return `${say(way, { count: shufflers.length })}${fakes ? ` ${say("shuffleFakes", { fakes })}` : ""}`;
}

/** @param {any} terms @param {(key: string, values?: any) => string} say */
function trust(terms, say) {
  const { mode, shufflers, together } = terms;
  if (together.length) {
    const named = (/** @type {string} */ role) => roleName(role.replace("shuffler_", ""), say);
    return say("shuffleTogether", { roles: together.map((/** @type {string[]} */ group) => group.map(named).join(" + ")).join("; ") });
  }
  const key = mode === "relay" ? "shuffleTrustOne" : isChain(terms) ? "shuffleTrustAny" : "shuffleTrustMost";
  return say(key, { honest: honest(terms), count: shufflers.length });
}

/** @param {string} role "collector", "relay" or the number of a shuffler @param {(key: string, values?: any) => string} say */
const roleName = (role, say) =>
  role === "collector" ? say("roleCollector") : role === "relay" ? say("roleRelay") : say("roleShuffler", { i: role });

/** Who takes part. @param {any} terms @param {(key: string, values?: any) => string} say */
function parties({ collector, relay, shufflers }, say) {
  const names = shufflers.map((/** @type {any} */ { name }) => name).join(", ");
  const all = [
    ...(relay ? [[say("roleRelay"), relay.name]] : []),
    [shufflers.length > 1 ? say("roleShufflers") : say("roleShuffler", { i: "" }).trim(), names],
    [say("roleCollector"), collector.name],
  ];
  return h("dl", { class: "parties" }, ...all.flatMap(([role, name]) => [h("dt", {}, role), h("dd", {}, name)]));
}

/**
 * Three epsilons that grow with what an adversary holds. The first two are claimed by the operators; without a session
 * nobody has claimed anything yet.
 * @param {any} session
 * @param {string} local
 * @param {(key: string, values?: any) => string} say
 */
function triple(session, local, say) {
  const { epsilon, epsilon_others: others } = session?.certificate ?? {};
  const rows = [
    ...(session ? [["collector", epsilon, "byClaim"], ["others", others, "byClaim"]] : []),
    ["local", local, "byNoise"],
  ];
  const number = (/** @type {string} */ figure) => say("shuffleEpsilon", { epsilon: Number(figure) });
  const line = ([whom, figure, by]) =>
    h(
      "tr",
      { "data-against": whom },
      h("th", { scope: "row" }, say(`against_${whom}`), h("small", {}, say(by))),
      h("td", { class: "right number" }, number(figure)),
    );
  return h(
    "table",
    { class: "triple" },
    h("caption", {}, say("shuffleTable")),
    h(
      "thead",
      {},
      h("tr", {}, h("th", { scope: "col" }, say("shuffleWho")), h("th", { scope: "col", class: "right" }, say("shuffleMost"))),
    ),
    h("tbody", {}, ...rows.map(line)),
  );
}

/**
 * @param {any} collection
 * @param {any} session the verified session that takes reports now, if there is one
 * @param {string} local the epsilon of the mechanism
 * @param {(key: string, values?: any) => string} say
 */
export function shufflePromise({ shuffle: terms, invitations }, session, local, say) {
  const { relay, together, minimum, delta } = terms;
  const apart = together.length === 0;
  return h(
    "section",
    { class: "promise", "aria-labelledby": "shuffling" },
    h("h2", { id: "shuffling" }, say("shuffleTitle")),
    h("p", {}, how(terms, say)),
    parties(terms, say),
    h("p", {}, say(relay ? "shuffleBehind" : "shuffleSeen")),
    h("p", { class: apart ? null : "open-note" }, trust(terms, say)),
    triple(apart ? session : null, local, say),
    session && apart && h("p", {}, say("shuffleClaim", { minimum, delta: power(delta) })),
    session && apart && !invitations && h("p", {}, say("shuffleFlood")),
    session && apart && h("p", { class: "soft" }, say("shuffleCounted")),
  );
}

/** Why nobody can answer here now, in the words of the page. @param {any} error @param {(key: string, values?: any) => string} say */
export function hindrance(error, say) {
  if (error?.name === "CannotSeal") return say(`hindered_${error.reason}`);
  if (error?.name === "ProtocolViolation") return say("hindered_violation", { reason: error.message });
  return error?.name === "TacitError" ? say("hindered_session") : "";
}

/** What a sealed report waits for. @param {any} entry @param {any} terms @param {(key: string, values?: any) => string} say */
export function waitsFor({ reason }, { shufflers }, say) {
  const missing = [...reason.matchAll(/shuffler_(\d):/g)].map(([, i]) => shufflers[Number(i) - 1]?.name ?? i);
  if (missing.length) return say("waitFor", { names: missing.join(", ") });
  return /session/.test(reason) ? say("hindered_session") : reason;
}

/**
 * Whether a report took part, as far as it is known, and a button that asks again.
 * @param {any} part what the client found out, or why it could not
 * @param {() => void} ask
 * @param {(key: string, values?: any) => string} say
 */
export function partOf(part, ask, say) {
  const words = part?.error
    ? say("part_refused", { reason: part.error })
    : part && say(`part_${part.state}`, { count: part.respondents });
  const done = part?.state === "included";
  return h(
    "div",
    { class: "part", role: "status", "data-part": part?.state ?? "" },
    words && h("p", {}, words),
    !done && h("div", {}, h("button", { type: "button", onclick: ask }, say("checkPart"))),
  );
}
