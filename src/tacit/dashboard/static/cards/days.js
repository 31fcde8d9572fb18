/** Reports per day: counts by date, so that an operator sees whether a collection is alive. No times are known. */

import { h } from "../page/dom.js";
import { count } from "../page/format.js";

const MOST_DAYS = 14;

/** The days from the first to the last, those without a report included. @param {Record<string, number>} days @returns {[string, number][]} */
export function everyDay(days) {
  const known = Object.keys(days).sort();
  if (!known.length) return [];
  const [first, last] = [known[0], known[known.length - 1]].map((date) => Date.parse(date));
  const length = Math.round((last - first) / 86400000) + 1;
  return Array.from({ length }, (_, i) => {
    const date = new Date(first + 86400000 * i).toISOString().slice(0, 10);
    return [date, days[date] ?? 0];
  });
}

/** @param {Record<string, number>} days */
export function perDay(days) {
  const all = everyDay(days);
  if (!all.length) return h("p", { class: "soft" }, "None so far.");
  const shown = all.slice(-MOST_DAYS).reverse();
  const most = Math.max(...shown.map(([, reports]) => reports), 1);
  const rows = shown.map(([date, reports]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("time", { datetime: date }, date)),
      h("td", { class: "day-bar" }, h("progress", { max: most, value: reports, "aria-hidden": "true" })),
      h("td", { class: "right" }, count(reports)),
    ),
  );
  const earlier = all.slice(0, -MOST_DAYS).reduce((sum, [, reports]) => sum + reports, 0);
  const heads = [h("th", { scope: "col" }, "Day (UTC)"), h("td", {}), h("th", { scope: "col", class: "right" }, "Reports")];
  return h(
    "div",
    {},
    h(
      "table",
      { class: "per-day" },
      h("caption", { class: "hidden-text" }, "Reports per day"),
      h("thead", {}, h("tr", {}, ...heads)),
      h("tbody", {}, ...rows),
    ),
    earlier > 0 && h("p", { class: "soft" }, `${count(earlier)} before these days.`),
  );
}
