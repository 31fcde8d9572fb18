/** Numbers and states as people read them. */

import { h, spoken } from "./dom.js";

const WHOLE = new Intl.NumberFormat("en");

/** @param {number} value */
export const count = (value) => WHOLE.format(value);

/** @param {number} n */
export const reports = (n) => `${count(n)} ${n === 1 ? "report" : "reports"}`;

/** What is said in place of a number that nothing is known about. */
const UNKNOWN = "not known yet";

/**
 * A share in percent, with as many decimals as its error deserves; one without error has one decimal.
 * @param {number | null} share
 * @param {number | null} [error]
 */
export const percent = (share, error) =>
  share === null ? UNKNOWN : `${unsigned((100 * share).toFixed(error ? decimals(100 * error) : 1))} %`;

/** Both ends of an interval. @param {any} cell @param {(value: number, error: number) => string} show */
export const interval = ({ low, high, standard_error: error }, show) =>
  low === null || high === null ? UNKNOWN : `from ${show(low, error)} to ${show(high, error)}`;

/** What an interval of a level is called. @param {number} level */
export const intervalName = (level) => `${Math.round(100 * level)} % interval`;

/** Text of at most so many letters. @param {string} text @param {number} most */
export const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Zero without a sign. @param {string} text */
const unsigned = (text) => (/^-[0.]*$/.test(text) ? text.slice(1) : text);

/** Decimals worth showing for a number with this error. @param {number} error */
export const decimals = (error) => Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(Math.max(error, 1e-9)))));

/** A number with as many decimals as its error deserves. @param {number | null} value @param {number} error */
export const number = (value, error) =>
  value === null ? UNKNOWN : unsigned(
    new Intl.NumberFormat("en", {
      minimumFractionDigits: decimals(error),
      maximumFractionDigits: decimals(error),
    }).format(value),
  );

/** A number whose error is not at hand: three digits that count. @param {number} value */
export const significant = (value) => {
  if (Math.abs(value) < 0.0005) return "0";
  return Math.abs(value) >= 1000 ? count(Math.round(value)) : String(Number(value.toPrecision(Math.abs(value) < 0.1 ? 2 : 3)));
};

/** Mutual information, corrected for the noise: what is too small to be told from nothing is said so. @param {number} gain */
export const nats = (gain) => (gain >= 0.0005 ? gain.toFixed(3) : gain > 0 ? "< 0.001" : "0");

/** A p-value: "= 0.031", "< 0.001". @param {number | null | undefined} p */
export const probability = (p) => {
  if (typeof p !== "number") return "unknown";
  return p < 0.001 ? "< 0.001" : `= ${Number(p.toPrecision(2))}`;
};

/** The answer a row is about. @param {any} value @returns {string} */
export function label(value) {
  if (Array.isArray(value)) return value.map(label).join(", ");
  return value === true ? "yes" : value === false ? "no" : String(value);
}

/** Why a question has no answers yet. @param {{n?: number, minimum: number}} question */
export const tooFew = ({ n, minimum }) =>
  `Too few reports on this question so far: ${count(n ?? 0)} of the ${count(minimum)} that it needs. ` +
  "Where there are several questions, each person reports on one of them, so it takes longer.";

/** Epsilon from its wire form. @param {any} epsilon @returns {string} */
export function epsilon(epsilon) {
  if (typeof epsilon !== "object" || epsilon === null) return String(epsilon);
  return epsilon.share ? `${epsilon.share} of ${epsilon.of}` : String(epsilon.of);
}

const STATES = /** @type {Record<string, string[]>} */ ({
  draft: ["warn", "Draft"],
  published: ["good", "Open"],
  closed: ["still", "Closed"],
});

/** @param {string} state */
export const pill = (state) => h("span", { class: `pill ${STATES[state]?.[0] ?? ""}` }, STATES[state]?.[1] ?? state);

const REASONS = /** @type {Record<string, string>} */ ({
  closed: "arrived after closing",
  collection: "for another collection",
  wrong_collection: "for another collection",
  digest: "for another document",
  duplicate: "sent twice, counted once",
  invitation: "without a valid invitation",
  token: "without a valid token",
  malformed: "cannot be read",
  range: "outside the mechanism's range",
  rate_limited: "too many at once",
  row: "with public columns that do not fit",
  shuffled: "sent past the shufflers",
  too_large: "too large",
  width: "of the wrong length",
  window_closed: "for a window that is over",
  window_future: "for a window that has not begun",
});

/** @param {string} reason */
export const reasonText = (reason) => REASONS[reason] ?? spoken(reason);

/** A day counted from 1970 as a date. @param {number} day */
export const date = (day) => new Date(86400000 * day).toISOString().slice(0, 10);

/** A click that asks once more before it does something for good. @param {() => any} task */
export function twice(task) {
  return (/** @type {any} */ { currentTarget: button }) => {
    if (button.dataset.sure) return task();
    const words = button.textContent;
    button.dataset.sure = "1";
    button.textContent = "Click again to confirm";
    setTimeout(() => {
      delete button.dataset.sure;
      button.textContent = words;
    }, 4000);
    return undefined;
  };
}

/** An error in a card, with something to do about it. @param {Error} error @param {() => void} [again] */
export const trouble = (error, again) =>
  h(
    "div",
    { class: "card" },
    h("p", { class: "problem", role: "alert" }, error.message),
    again && h("div", {}, h("button", { type: "button", onclick: again }, "Try again")),
  );
