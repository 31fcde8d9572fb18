/** The trend of a collection that asks again and again: windows with their band, raw beside smoothed, and changes. */

import { address, call } from "./api.js";
import { colour } from "./chart.js";
import { h, scrolled } from "./dom.js";
import { count, interval, label, percent, probability } from "./format.js";
import { Picture, axes, plainly, tooltip } from "./range_charts.js";

/** How windows are put together, and how many of them are shown. */
const BY = { window: "each window", group: "joined while too few", week: "weeks", month: "months" };
const LAST = { 0: "all", 30: "the last 30", 90: "the last 90" };
const MOST_LISTED = 5;
const ALPHA = 0.05;

/** @param {any} row */
const daysOf = ({ first_day: first, last_day: last }) => (first === last ? first : `${first} to ${last}`);

/** Lines with a band behind them; windows that still take reports have hollow dots. */
class Trend extends Picture {
  /** @param {string} title */
  constructor(title) {
    super(`Trend: ${title}. The table below has the same numbers.`, "upright");
  }

  /** @param {any[]} rows answered windows @param {number[]} cells which values to draw @param {boolean} smooth */
  draw(rows, cells, smooth) {
    this.redraw = () => this.draw(rows, cells, smooth);
    const lines = cells.flatMap((cell, i) => this.#lines(rows, cell, ["--accent", "--warn"][i], smooth));
    const shown = (/** @type {number} */ place) =>
      cells.map((cell) => {
        const { value, estimate, ...ends } = rows[place].rows[cell];
        return `${label(value)}: ${percent(estimate, ends.standard_error)} (${interval(ends, percent)})`;
      }).join(" · ");
    const words = tooltip((place) => daysOf(rows[place]), shown, ({ datasetIndex }) => datasetIndex === 0);
    this.paint({
      type: "line",
      data: { labels: rows.map(daysOf), datasets: lines },
      options: plainly(axes((place) => rows[place]?.first_day ?? "", "time"), { tooltip: words }),
    });
  }

  /** @param {any[]} rows @param {number} cell @param {string} name of a colour @param {boolean} smooth @returns {any[]} */
  #lines(rows, cell, name, smooth) {
    const ink = colour(name) || colour("--ink");
    const column = (/** @type {string} */ what) => rows.map(({ rows: cells }) => cells[cell][what]);
    const plain = { borderColor: ink, backgroundColor: ink, borderWidth: 1.5, pointRadius: 0 };
    const end = { ...plain, borderWidth: 0 };
    return [
      {
        ...{ ...plain, data: column("estimate"), pointRadius: rows.length > 120 ? 1.5 : 3, showLine: !smooth },
        pointBackgroundColor: rows.map(({ provisional }) => (provisional ? colour("--card") : ink)),
      },
      { ...end, data: column("band_low") },
      { ...end, data: column("band_high"), backgroundColor: `color-mix(in srgb, ${ink} 18%, transparent)`, fill: "-1" },
      ...(smooth ? [{ ...plain, data: column("smoothed"), borderWidth: 2.5 }] : []),
    ];
  }
}

/** @param {string} name @param {Record<string, string>} options @param {() => void} changed */
function choice(name, options, changed) {
  const field = h("select", { onchange: changed }, ...Object.entries(options).map(([value, words]) => h("option", { value }, words)));
  return { field, element: h("label", { class: "row" }, `${name} `, field) };
}

/** The card of the trend. */
export class TrendCard {
  /** @param {string} id @param {any} document_ */
  constructor(id, document_) {
    this.id = id;
    const { domain, text } = document_.questions[0];
    /** @type {string[]} */
    const labels = [...(domain.labels ?? []), ...(domain.other ? [domain.other] : [])];
    const change = () => void this.update();
    const redraw = () => this.#show();
    this.by = choice("By", BY, change);
    this.last = choice("Show", LAST, redraw);
    this.first = choice("Value", Object.fromEntries(labels.map((one, i) => [i, one])), redraw);
    this.second = choice("beside", { "": "nothing", ...Object.fromEntries(labels.map((one, i) => [i, one])) }, redraw);
    this.smooth = h("input", { type: "checkbox", onchange: redraw });
    this.trend = new Trend(Object.values(text)[0]);
    this.words = h("div", { class: "stack" });
    this.table = scrolled("Windows as a table");
    this.element = h(
      "section",
      { class: "card stack", "aria-labelledby": "trend-title" },
      h("h2", { id: "trend-title" }, "Trend"),
      h("div", { class: "row" }, this.by.element, this.last.element, this.first.element, this.second.element, h("label", { class: "row" }, this.smooth, " smoothed")),
      this.trend.element,
      this.words,
      h("details", {}, h("summary", {}, "Windows as a table"), this.table),
      h("div", { class: "row" }, ...["", ".csv"].map((end) => this.#link(end))),
    );
    /** @type {any} */
    this.answer = undefined;
  }

  /** @param {string} end */
  #link(end) {
    return h("a", { class: "button", href: address(`collections/${this.id}/series${end}?band=true`), download: true }, end ? "CSV" : "JSON");
  }

  /** Ask again, with the present choices. */
  async update() {
    const given = new URLSearchParams({ by: this.by.field.value, band: "true", smooth: "afterwards", changes: "true" });
    this.answer = await call("GET", `collections/${this.id}/series?${given}`);
    this.#show();
  }

  #show() {
    if (!this.answer) return;
    const told = this.answer.series.filter((/** @type {any} */ { status }) => status === "ok").slice(-Number(this.last.field.value));
    const cells = [this.first, this.second].map(({ field }) => field.value).filter((value) => value !== "").map(Number);
    this.trend.element.hidden = !told.length;
    if (told.length) this.trend.draw(told, cells, this.smooth.checked);
    this.words.replaceChildren(...this.#sentences(told));
    this.table.replaceChildren(this.#rows(cells));
  }

  /** @param {any[]} told */
  #sentences(told) {
    const few = !told.length && h("p", { class: "soft" }, `No window has ${count(this.answer.minimum_cohort)} reports yet.`);
    const found = this.answer.changes.filter((/** @type {any} */ { p_value: p }) => p < ALPHA).slice(0, MOST_LISTED);
    const changes = found.map((/** @type {any} */ { value, day, before, after, p_value: p }) =>
      h("p", {}, h("b", {}, `${label(value)} changed on ${day}`), `, from ${percent(before)} to ${percent(after)} (probability of chance ${probability(p)}).`));
    const settling = told.some(({ provisional }) => provisional) && h("p", { class: "soft" }, "Hollow dots are provisional: their windows still take reports.");
    const band = told.length && h("p", { class: "soft" }, "The band holds all windows and values together with 95 %, about all devices.");
    return [few, ...changes, settling, band, ...this.answer.words.slice(0, 2).map((/** @type {string} */ one) => h("p", { class: "soft" }, one))].filter(Boolean);
  }

  /** @param {number[]} cells */
  #rows(cells) {
    const head = ["Days", "State", "Reports", ...cells.map((cell) => this.first.field.options[cell].text)];
    const shares = (/** @type {any} */ row) =>
      cells.map((cell) => h("td", { class: "right" }, row.rows.length ? percent(row.rows[cell].estimate, row.rows[cell].standard_error) : "—"));
    const lines = this.answer.series.map((/** @type {any} */ row) =>
      h("tr", {}, h("th", { scope: "row" }, daysOf(row)), h("td", {}, row.state), h("td", { class: "right" }, count(row.n)), ...shares(row)));
    return h("table", {}, h("caption", { class: "hidden-text" }, "Windows"), h("thead", {}, h("tr", {}, ...head.map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, ...lines));
  }
}
