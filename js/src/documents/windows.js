/**
 * The windows of a document that asks again and again, and the account that its reports are charged to.
 * The twin of `tacit.wire.windows` and `tacit.device.windows.terms`; deciding about reports is no part of it. Loaded with
 * `ticks.js`, for documents with windows or an account alone.
 */

import { asBudget } from "../numbers/budget.js";
import { insist, isObject, matches } from "../numbers/checks.js";
import { InvalidSpec } from "../errors.js";
import { areIntegers } from "../numbers/exact.js";
import { checkFields } from "../nested.js";
import { isName } from "./rows.js";

const MAX_WINDOWS = 4096;
const LAST_YEAR = "9000-12-31";

/** @param {unknown} text @returns {Date | null} midnight of a date in its one written form, such as 2030-01-07 */
function dateOf(text) {
  if (!matches(text, /^\d{4}-\d\d-\d\d$/)) return null;
  const day = new Date(`${text}T00:00:00Z`);
  // A day that does not exist is read as a later one, or as none.
  return !Number.isNaN(Number(day)) && day.toISOString().startsWith(text) ? day : null;
}

/** @param {any} windows */
function checkFirst({ every, first }) {
  const day = dateOf(first);
  if (day === null || first < "0001" || first > LAST_YEAR) throw new InvalidSpec('windows.first must be a date');
  insist(every !== "week" || day.getUTCDay() === 1, "windows.first", "a Monday");
  insist(every !== "month" || day.getUTCDate() === 1, "windows.first", "the 1st of a month");
}

/** @param {any} windows */
function checkWindows(windows) {
  checkFields("document.windows", ["count", "every", "first", "guarantee", "late", "per", "schedule", "zone"], windows);
  const { count, every, late, per, schedule, zone, guarantee } = windows;
  insist(["day", "week", "month"].includes(every), "windows.every", "day, week or month");
  insist(areIntegers([count], 1, MAX_WINDOWS), "windows.count", "from 1 to 4096");
  insist(areIntegers([late], 0, 31), "windows.late", "from 0 to 31");
  insist(areIntegers([per], 1, count), "windows.per", "from 1 to count");
  insist(["utc", "local"].includes(zone), "windows.zone", "utc or local");
  insist(schedule === "fixed", "windows.schedule", '"fixed"');
  checkFirst(windows);
  const fresh = per === 1 ? "event" : "run";
  insist(guarantee === (per === count ? "lifetime" : fresh), "windows.guarantee", "what `per` keeps");
}

/** An epsilon as an exact fraction. @param {any} text @param {string} where @returns {[bigint, bigint]} */
function capOf(text, where) {
  insist(matches(text, /^(0|[1-9]\d?)(\.\d{0,17}[1-9])?$/), where, "a shortest decimal");
  return asBudget(text).declared;
}

/** @param {any} account @param {any} windows @param {any} epsilon the budget of one report */
function checkAccount(account, { per }, epsilon) {
  checkFields("document.account", ["lifetime_epsilon", "name", "run", "run_epsilon"], account);
  const { name, run, run_epsilon: cap, lifetime_epsilon: life } = account;
  insist(isName(name), "account.name", "a lower-case word of up to 40 characters");
  insist(areIntegers([run], 1, MAX_WINDOWS), "account.run", "from 1 to 4096");
  const [top, bottom] = asBudget(epsilon).declared;
  const [most, per1] = capOf(cap, "account.run_epsilon");
  const slots = BigInt(Math.ceil(run / per));
  insist(slots * top * per1 <= most * bottom, "account.run_epsilon", "enough for a run");
  if (life === null) return;
  const [all, per2] = capOf(life, "account.lifetime_epsilon");
  insist(top * per2 <= all * bottom, "account.lifetime_epsilon", "at least epsilon");
}

/**
 * Refuse windows without an account, accounts without windows, and what does not go with windows.
 * @param {any} document
 * @param {import("../base.js").Device} mechanism
 */
export function checkWindowed({ windows = null, account = null, shuffle, rows, plan, policy, invitations, epsilon }, mechanism) {
  if (windows === null) return insist(account === null, "document.account", "null without windows");
  checkWindows(windows);
  insist(isObject(account), "document.account", "stated");
  checkAccount(account, windows, epsilon);
  insist([shuffle, rows, plan].every((one) => one === null), "document", "without rows, plan and shuffle");
  insist(policy === "single" && !invitations, "document", 'of policy "single" without invitations');
  insist(!mechanism.repeats, "document.mechanism", "of a kind with fresh noise alone");
}
