/** What is said before the first question: one paragraph, and the details behind a line that opens. */

import { h } from "../page/dom.js";
import { ratioOf, surest, weakness } from "../page/odds.js";

/** @typedef {(key: string, values?: Record<string, any>) => string} Say */

/** Epsilon as a number: the exact odds are a 64-bit fraction. @param {any} collection */
export const epsilonOf = ({ mechanism }) => Math.log(ratioOf(mechanism));

/** How several questions are asked; empty for one. @param {any} collection @param {Say} say */
function asking({ policy, questions, mechanism }, say) {
  if (policy === "single") return mechanism.family?.kind === "ticks" ? say("ticks", { count: mechanism.family.size }) : "";
  return say(policy === "joint" ? `joint_${mechanism.family.kind}` : policy, { count: questions.length });
}

/** @param {any} collection @param {Say} say @param {string} [more] the address of the privacy page */
export function promise(collection, say, more) {
  const ratio = ratioOf(collection.mechanism);
  const { minimum_cohort: cohort, rows, shuffle, plan } = collection;
  const details = [
    asking(collection, say),
    plan && say("plan"),
    collection.questions.some((/** @type {any} */ { domain }) => domain.kind === "optional") && say("declining"),
    say("epsilon", { epsilon: Number(epsilonOf(collection).toPrecision(4)), sure: surest(ratio) }) + weakness(ratio, say),
    say(rows ? "cohortRows" : "cohort", { count: Math.max(cohort, shuffle?.minimum ?? 0) }),
  ].filter(Boolean);
  return h(
    "section",
    { class: "promise", "aria-labelledby": "promise" },
    h("h2", { id: "promise" }, say("privacyTitle")),
    h("p", {}, say(rows ? "privacyRows" : "privacy")),
    h(
      "details",
      {},
      h("summary", {}, say("details")),
      ...details.map((words) => h("p", {}, words)),
      more && h("p", {}, h("a", { href: more, hreflang: "en" }, say("more"))),
    ),
  );
}
