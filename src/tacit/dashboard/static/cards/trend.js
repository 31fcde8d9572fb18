/** The trend of a collection that asks again and again: windows with their band, raw beside smoothed, and changes. */

import { address, call } from "../page/api.js";
import { colour } from "../page/chart.js";
import { h, scrolled } from "../page/dom.js";
import { downloads } from "../page/download.js";
import { count, interval, label, percent, probability } from "../page/format.js";
import { Picture, axes, plainly, tooltip } from "../ranges/charts.js";

/** How windows are put together. */
const BY = { window: "each window", group: "joined while too few", week: "weeks", month: "months" };
const MOST_LISTED = 5;
const ALPHA = 0.05;

/** @param {any} row */
const daysOf = ({ first_day: first, last_day: last }) => (first === last ? first : `${first} to ${last}`);

/** Dashed lines where something changed, with the date, and what is being dragged over. */
const marks = {
  id: "marks",
  /** @param {any} chart */
  afterDatasetsDraw({ ctx, chartArea: { top, bottom, right }, scales: { x }, options }) {
    const { changes, dragged } = options.plugins.marks;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("--ink");
    ctx.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    for (const { place, day } of changes) {
      const at = x.getPixelForValue(place);
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(at, top);
      ctx.lineTo(at, bottom);
      ctx.stroke();
      const isLeft = at + ctx.measureText(day).width + 6 > right;
      ctx.textAlign = isLeft ? "right" : "left";
      ctx.fillText(day, at + (isLeft ? -5 : 5), top + 11);
    }
    if (dragged) {
      const [from, to] = dragged.map((/** @type {number} */ place) => x.getPixelForValue(place));
      ctx.globalAlpha = 0.15;
      ctx.fillRect(from, top, to - from, bottom - top);
    }
    ctx.restore();
  },
};

/** Lines with a band behind them; windows that still take reports have hollow dots. A part that is dragged over is told. */
class Trend extends Picture {
  /** @param {string} title @param {(first: number, last: number) => void} dragged over places of rows */
  constructor(title, dragged) {
    super(`Trend: ${title}. The table below has the same numbers.`, "upright");
    /** Where the pointer went down. */
    this.start = -1;
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => (this.start = this.#under(event)));
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.#drag(event));
    this.canvas.addEventListener("pointercancel", () => (this.start = -1));
    this.canvas.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => {
      const [first, last] = [this.start, this.#under(event)].sort((a, b) => a - b);
      this.start = -1;
      // A click is no part of a series.
      if (first >= 0 && last > first) dragged(first, last);
    });
  }

  /** The row under a pointer. @param {PointerEvent} event @returns {number} */
  #under({ clientX }) {
    const { scales: { x }, data } = this.chart;
    return Math.min(Math.max(x.getValueForPixel(clientX - this.canvas.getBoundingClientRect().left), 0), data.labels.length - 1);
  }

  /** @param {PointerEvent} event */
  #drag(event) {
    if (this.start < 0) return;
    this.chart.options.plugins.marks.dragged = [this.start, this.#under(event)];
    this.chart.draw();
  }

  /**
   * @param {any[]} rows answered windows
   * @param {number[]} cells which values to draw
   * @param {boolean} smooth
   * @param {string[]} days on which something changed
   */
  draw(rows, cells, smooth, days) {
    this.redraw = () => this.draw(rows, cells, smooth, days);
    const changes = days.map((day) => ({ day, place: rows.findIndex(({ first_day: first }) => first === day) }));
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
      options: plainly(axes((place) => rows[place]?.first_day ?? "", "time"), {
        ...{ tooltip: words, marks: { changes: changes.filter(({ place }) => place >= 0), dragged: null } },
        legend: {
          display: cells.length > 1,
          labels: { color: colour("--ink"), usePointStyle: true, boxHeight: 6, filter: (/** @type {any} */ { text }) => text },
        },
      }),
      plugins: [marks],
    });
  }

  /** @param {any[]} rows @param {number} cell @param {string} name of a colour @param {boolean} smooth @returns {any[]} */
  #lines(rows, cell, name, smooth) {
    const ink = colour(name) || colour("--ink");
    const column = (/** @type {string} */ what) => rows.map(({ rows: cells }) => cells[cell][what]);
    const plain = { borderColor: ink, backgroundColor: ink, borderWidth: 1.5, pointRadius: 0 };
    const end = { ...plain, borderWidth: 0, label: "" };
    return [
      {
        ...{ ...plain, label: label(rows[0].rows[cell].value), data: column("estimate"), pointRadius: rows.length > 120 ? 1.5 : 3, showLine: !smooth },
        pointBackgroundColor: rows.map(({ provisional }) => (provisional ? colour("--card") : ink)),
      },
      { ...end, data: column("band_low") },
      { ...end, data: column("band_high"), backgroundColor: `color-mix(in srgb, ${ink} 18%, transparent)`, fill: "-1" },
      ...(smooth ? [{ ...plain, label: "", data: column("smoothed"), borderWidth: 2.5 }] : []),
    ];
  }
}

/** @param {string} name @param {any[][]} options @param {() => void} changed */
function choice(name, options, changed) {
  const field = h("select", { onchange: changed }, ...options.map(([value, words]) => h("option", { value }, words)));
  return { field, element: h("label", { class: "field" }, `${name} `, field) };
}

/** A date that bounds what is shown; empty is no bound. @param {string} name @param {() => void} changed */
function bound(name, changed) {
  const field = h("input", { type: "date", onchange: changed });
  return { field, element: h("label", { class: "field" }, `${name} `, field) };
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
    this.by = choice("By", Object.entries(BY), change);
    [this.from, this.to] = [bound("From", redraw), bound("To", redraw)];
    this.whole = h("button", { type: "button", class: "quiet", onclick: () => this.#zoom("", "") }, "Whole series");
    this.first = choice("Value", labels.map((one, i) => [i, one]), redraw);
    this.second = choice("Beside", [["", "nothing"], ...labels.map((one, i) => [i, one])], redraw);
    this.smooth = h("input", { type: "checkbox", onchange: redraw });
    this.trend = new Trend(Object.values(text)[0], (first, last) => this.#zoom(this.told[first].first_day, this.told[last].last_day));
    /** The rows that are drawn. @type {any[]} */
    this.told = [];
    this.words = h("div", { class: "stack" });
    this.table = scrolled("Windows as a table");
    this.element = h(
      "section",
      { class: "card stack", "aria-labelledby": "trend-title" },
      h("h2", { id: "trend-title" }, "Trend"),
      h("div", { class: "pair choices" }, ...[this.by, this.first, this.second, this.from, this.to].map(({ element }) => element)),
      h("div", { class: "row" }, h("label", { class: "check" }, this.smooth, "Smoothed"), this.whole),
      this.trend.element,
      this.words,
      h("details", {}, h("summary", {}, "Windows as a table"), this.table),
      downloads(["JSON", () => this.#file("")], ["CSV", () => this.#file(".csv")]),
    );
    /** @type {any} */
    this.answer = undefined;
  }

  /** The series as it is shown, as a file. @param {string} end */
  #file(end) {
    return address(`collections/${this.id}/series${end}?${new URLSearchParams({ band: "true", by: this.by.field.value })}`);
  }

  /** Ask again, with the present choices. */
  async update() {
    const given = new URLSearchParams({ by: this.by.field.value, band: "true", smooth: "afterwards", changes: "true" });
    this.answer = await call("GET", `collections/${this.id}/series?${given}`);
    this.#show();
  }

  /** Show the windows between two dates. @param {string} from @param {string} to */
  #zoom(from, to) {
    [this.from.field.value, this.to.field.value] = [from, to];
    this.#show();
  }

  /** Rows between the dates that were picked. @returns {any[]} */
  #shown() {
    const [from, to] = [this.from.field.value, this.to.field.value || "9999"];
    return this.answer.series.filter((/** @type {any} */ { first_day: first, last_day: last }) => last >= from && first <= to);
  }

  /** Changes that are worth a word. @returns {any[]} */
  #changes() {
    return this.answer.changes.filter((/** @type {any} */ { p_value: p }) => p < ALPHA);
  }

  #show() {
    if (!this.answer) return;
    const told = (this.told = this.#shown().filter(({ status }) => status === "ok"));
    this.whole.hidden = !this.from.field.value && !this.to.field.value;
    const cells = [this.first, this.second].map(({ field }) => field.value).filter((value) => value !== "").map(Number);
    this.trend.element.hidden = !told.length;
    const days = new Set(this.#changes().filter(({ value }) => cells.some((cell) => told[0]?.rows[cell].value === value)).map(({ day }) => day));
    if (told.length) this.trend.draw(told, cells, this.smooth.checked, [...days]);
    this.words.replaceChildren(...this.#sentences(told));
    this.table.replaceChildren(this.#rows(cells));
  }

  /** @param {any[]} told */
  #sentences(told) {
    const where = this.whole.hidden ? "yet" : "between these dates";
    const few = !told.length && h("p", { class: "soft" }, `No window has ${count(this.answer.minimum_cohort)} reports ${where}.`);
    const changes = this.#changes().slice(0, MOST_LISTED).map((/** @type {any} */ { value, day, before, after, p_value: p }) =>
      h("p", {}, h("b", {}, `${label(value)} changed on ${day}`), `, from ${percent(before)} to ${percent(after)} (probability of chance ${probability(p)}).`));
    const settling = told.some(({ provisional }) => provisional) && h("p", { class: "soft" }, "Hollow dots are provisional: their windows still take reports.");
    const smooth = told.length > 0 && this.smooth.checked &&
      h("p", { class: "soft" }, "Lines are smoothed, by a model in which shares drift: they lag behind jumps. Dots are the raw windows.");
    const band = told.length > 0 && h("p", { class: "soft" }, "The band holds all windows and values together with 95 %, about all devices.");
    return [few, ...changes, settling, smooth, band, ...this.answer.words.slice(0, 2).map((/** @type {string} */ one) => h("p", { class: "soft" }, one))].filter(Boolean);
  }

  /** @param {number[]} cells */
  #rows(cells) {
    const head = ["Days", "State", "Reports", ...cells.map((cell) => this.first.field.options[cell].text)];
    const shares = (/** @type {any} */ row) =>
      cells.map((cell) => h("td", { class: "right" }, row.rows.length ? percent(row.rows[cell].estimate, row.rows[cell].standard_error) : "—"));
    const lines = this.#shown().map((/** @type {any} */ row) =>
      h("tr", {}, h("th", { scope: "row" }, daysOf(row)), h("td", {}, row.state), h("td", { class: "right" }, count(row.n)), ...shares(row)));
    return h("table", { class: "numbers" }, h("caption", { class: "hidden-text" }, "Windows"), h("thead", {}, h("tr", {}, ...head.map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, ...lines));
  }
}
