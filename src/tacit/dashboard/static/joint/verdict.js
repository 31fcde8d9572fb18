/** Whether two questions are connected: the verdict of the test in words, and the measures behind it. */

import { h, spoken } from "../page/dom.js";
import { intervalName, nats, probability, significant } from "../page/format.js";

const CORRECTED = "mutual information in nats, corrected for the noise";

/** @param {any} given a number, or an estimate with its interval */
const estimateOf = (given) => (typeof given === "number" ? { estimate: given } : (given ?? {}));

/**
 * An estimate with its interval where there is one.
 * @param {any} given
 * @param {number} level
 * @param {(value: number) => string} [show]
 */
function measured(given, level, show = significant) {
  const { estimate, low, high } = estimateOf(given);
  if (typeof estimate !== "number") return null;
  const known = typeof low === "number" && typeof high === "number";
  const wide = `${intervalName(level)} ${known ? `${show(low)} to ${show(high)}` : "unknown"}`;
  return [show(estimate), known || given?.low !== undefined ? h("small", {}, wide) : null];
}

/** @param {string} name @param {any} value @param {string} [hint] */
function pair(name, value, hint) {
  if (!value) return null;
  const [figure, small] = Array.isArray(value) ? value : [value];
  return h("div", {}, h("dt", {}, name), h("dd", {}, figure, small, hint && h("small", {}, hint)));
}

/** What a test says that takes noise for data. @param {any} naive */
function comparison(naive) {
  if (!naive) return null;
  const { words, statistic, p_value: p } = naive;
  return h(
    "details",
    {},
    h("summary", {}, "If the noise were ignored"),
    h("p", { class: "soft" }, `χ² = ${significant(statistic)}, p ${probability(p)}. ${words ?? ""}`),
  );
}

/**
 * The verdict on two questions.
 * @param {string[]} names
 * @param {any} found what the collector says of them
 * @returns {any[]}
 */
export function verdict(names, found) {
  const { statistic, degrees, p_value: p, dependent, words, level = 0.95 } = found;
  const tested = typeof p === "number";
  const mark = !tested
    ? h("span", { class: "pill still" }, "not tested")
    : h("span", { class: `pill ${dependent ? "good" : "still"}` }, dependent ? "connected" : "no connection seen");
  const freedom = degrees === 1 ? "1 degree of freedom" : `${degrees} degrees of freedom`;
  const wald = `Wald χ² = ${significant(statistic ?? 0)}, ${freedom}`;
  const test = tested && [`p ${probability(p)}`, h("small", {}, wald)];
  return [
    h("div", { class: "row" }, h("h3", {}, names.map(spoken).join(" and ")), mark),
    h("p", {}, words),
    h(
      "dl",
      { class: "pairs" },
      pair("Test", test),
      pair("Odds ratio", measured(found.odds_ratio, level), "1 means no connection"),
      pair("Correlation", measured(found.correlation, level)),
      pair("Information shared", measured(found.mutual_information, level, nats), CORRECTED),
      pair("Cramér’s V", measured(found.cramers_v, level), "0 means none, 1 complete"),
    ),
    comparison(found.naive),
  ].filter(Boolean);
}
