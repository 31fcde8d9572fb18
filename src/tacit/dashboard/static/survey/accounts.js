/** The accounts of a device, as its owner reads them: what this run and all of life have cost, and where to look further. */

import { h } from "../page/dom.js";

/** @param {string} text an exact fraction such as "3/4" @returns {string} */
export const epsilonText = (text) => {
  const [top, bottom = "1"] = text.split("/");
  return `ε = ${Number((Number(top) / Number(bottom)).toPrecision(4))}`;
};

/** @param {any} account @param {(key: string, values?: any) => string} say */
function line({ collector, name, run, runCap, spent, lifetimeCap, windows, every, collections }, say) {
  const pages = collections.map((/** @type {string} */ id) => h("a", { href: `${collector}/c/${id}` }, `${id.slice(0, 8)}…`));
  return h(
    "tr",
    {},
    h("td", {}, name, pages.length > 0 && h("small", {}, " ", ...pages.flatMap((/** @type {any} */ one) => [one, " "]))),
    h("td", {}, say("accountOf", { spent: epsilonText(run), cap: runCap }), " ", windows > 1 && h("small", { class: "soft" }, say(`accountRun_${every}`, { windows }))),
    h("td", { class: "right" }, lifetimeCap === null ? epsilonText(spent) : say("accountOf", { spent: epsilonText(spent), cap: lifetimeCap })),
  );
}

/**
 * A table of accounts, or nothing where there are none.
 * @param {any[]} accounts
 * @param {(key: string, values?: any) => string} say
 */
export function accountTable(accounts, say) {
  if (!accounts.length) return [];
  const head = [say("account"), say("accountRun"), say("accountLife")];
  const cells = head.map((one, i) => h("th", { scope: "col", class: i === 2 && "right" }, one));
  const lines = accounts.map((account) => line(account, say));
  return [h("p", { class: "soft" }, say("accountNote")), h("table", {}, h("thead", {}, h("tr", {}, ...cells)), h("tbody", {}, ...lines))];
}
