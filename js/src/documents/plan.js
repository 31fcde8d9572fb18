/** The round of an adaptive plan in a document. The twin of `tacit.wire.document.Plan`. */

import { matches } from "../numbers/checks.js";
import { InvalidSpec } from "../errors.js";
import { areIntegers } from "../numbers/exact.js";
import { checkFields } from "../nested.js";
import { isName } from "./rows.js";

const WHO = "document.plan";

/** The most that a number of a plan may be; all of them are at least 1. */
const NUMBERS = { k: 4096, respondents: 1e10, round: 64, target: 1e10 };

/**
 * Refuse a plan with a field that cannot be. Above all `first` must be text: it is what a respondent takes part in once.
 * @param {any} plan
 */
export function checkPlan(plan) {
  if (plan === null) return;
  checkFields(WHO, ["first", "k", "method", "previous", "respondents", "round", "target"], plan);
  if (!isName(plan.method)) throw new InvalidSpec(`${WHO}.method must be the name of a plan`);
  for (const [name, most] of Object.entries(NUMBERS)) {
    if (!areIntegers([plan[name]], 1, most)) throw new InvalidSpec(`${WHO}.${name} must be an integer from 1 to ${most}`);
  }
  const linked = plan.round === 1 ? /^$/ : /^[0-9a-f]{64}$/;
  if (!matches(plan.first, linked) || !matches(plan.previous, linked)) {
    throw new InvalidSpec(`${WHO}: first and previous must be ids of documents, and empty in round 1`);
  }
}
