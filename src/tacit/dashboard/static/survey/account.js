/** What a collection that asks again and again has cost this device: this run, for life, and the next slot. */

import { Respondent } from "/js/tacit.js";
import { epsilonText } from "./accounts.js";
import { byId, h } from "../page/dom.js";

const UNITS = { day: "days", week: "weeks", month: "months" };
/** Reports of an application stay in its own ledger, which no page can read. */
const ELSEWHERE = "An application that takes part outside of this browser keeps a ledger of its own.";

/** @param {string} name @param {string} words */
const fact = (name, words) => [h("dt", {}, name), h("dd", {}, words)];

/** @param {any} view of the account @param {any} collection */
function facts({ run, runCap, spent, lifetimeCap, next }, { account, windows }) {
  const span = account.run > 1 ? `${account.run} ${UNITS[/** @type {"day"} */ (windows.every)]} in a row` : `one ${windows.every}`;
  const life = lifetimeCap === null ? `${epsilonText(spent)}, without a cap` : `${epsilonText(spent)} of ${lifetimeCap}`;
  return h(
    "dl",
    {},
    ...fact(`This run, ${span}`, `${epsilonText(run)} of ${runCap}`),
    ...fact("For life", life),
    ...fact("Next report", next === null ? "none is known yet" : `from ${next} on`),
  );
}

/** @param {any} card @param {string} id of the collection */
async function show(card, id) {
  try {
    const joined = await new Respondent().join(new URL(`/c/${id}`, location.href).href);
    const kept = await joined.view();
    card.append(facts(kept, joined.collection), h("p", { class: "soft" }, ELSEWHERE));
  } catch {
    // Without locks and a database no account can have been charged here; nor without the document.
    card.append(h("p", { class: "soft" }, `Nothing: this browser cannot keep the account. ${ELSEWHERE}`));
  }
  card.removeAttribute("aria-busy");
}

const card = byId("account");
void show(card, card.dataset.id);
