/** Bars with error bars. The table beside every chart says the same, so the chart itself is a picture. */

import { h } from "./dom.js";
import { decimals, interval, label, percent, short } from "./format.js";

export const MOST_BARS = 24;
/** Of answers in an order, which must not be torn apart, more are drawn, each of them lower. */
const MOST_ORDERED = 120;
const ROW = 34;
const LOW_ROW = 18;
/** Where there is no room beside the bars, the label and the figure stand above each. */
const NARROW_ROW = 46;
const ROOMY = 600;
const ABOVE = 15;

/**
 * How numbers are said: on the axis, right of a bar, and over it.
 * @typedef {{tick: (value: number) => string, figure: (row: any) => string, words: (row: any) => string}} Style
 */

/** A colour of the style sheet. @param {string} name */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Whiskers from low to high with caps, drawn over the bars. @param {Style} style @returns {any} */
const whiskers = (style) => ({
  id: "whiskers",
  /** @param {any} chart */
  afterDatasetsDraw(chart) {
    const { ctx, scales } = chart;
    const bars = chart.getDatasetMeta(0).data;
    ctx.save();
    ctx.strokeStyle = colour("--ink");
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    chart.options.plugins.whiskers.rows.forEach((/** @type {any} */ { low, high }, /** @type {number} */ i) => {
      if (low === null || high === null) return;
      const [y, left, right] = [bars[i].y, scales.x.getPixelForValue(low), scales.x.getPixelForValue(high)];
      for (const [x1, y1, x2, y2] of [
        [left, y, right, y],
        [left, y - 5, left, y + 5],
        [right, y - 5, right, y + 5],
      ]) {
        ctx.moveTo(x1, y1);
        ctx.lineTo(x2, y2);
      }
    });
    ctx.stroke();
    if (isRoomy(chart.width)) figures(chart, bars, style);
    else captions(chart, bars, style);
    ctx.restore();
  },
});

/** @param {number} width */
const isRoomy = (width) => width >= ROOMY;

/** What every bar is about and says, above it. @param {any} chart @param {any[]} bars @param {Style} style */
function captions({ ctx, options, width }, bars, style) {
  ctx.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textBaseline = "middle";
  const [ink, soft] = [colour("--ink"), colour("--soft")];
  options.plugins.whiskers.rows.forEach((/** @type {any} */ row, /** @type {number} */ i) => {
    const said = style.figure(row);
    ctx.textAlign = "right";
    ctx.fillStyle = soft;
    ctx.fillText(said, width - 4, bars[i].y - ABOVE);
    ctx.textAlign = "left";
    ctx.fillStyle = ink;
    ctx.fillText(fitted(ctx, label(row.value), width - 16 - ctx.measureText(said).width), 4, bars[i].y - ABOVE);
  });
}

/** As much of a text as has room. @param {any} ctx @param {string} text @param {number} room */
function fitted(ctx, text, room) {
  let most = text.length;
  while (most > 1 && ctx.measureText(short(text, most)).width > room) most -= 1;
  return short(text, most);
}

/** The estimate and half its interval; both ends of one that is cut off at 0 or 1. @param {any} row */
function figure(row) {
  const estimate = percent(row.estimate, row.standard_error);
  if (row.low === null || row.high === null) return `${estimate}, interval not known yet`;
  const digits = decimals(100 * row.standard_error);
  const [down, up] = [100 * (row.estimate - row.low), 100 * (row.high - row.estimate)];
  const even = Math.abs(up - down) < 0.5 * 10 ** -digits;
  const range = `(${(100 * row.low).toFixed(digits)} to ${(100 * row.high).toFixed(digits)})`;
  return `${estimate} ${even ? `± ${up.toFixed(digits)}` : range}`;
}

/** What every bar says, right of it. @param {any} chart @param {any[]} bars @param {Style} style */
function figures({ ctx, scales, options }, bars, style) {
  ctx.fillStyle = colour("--soft");
  ctx.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textBaseline = "middle";
  options.plugins.whiskers.rows.forEach((/** @type {any} */ row, /** @type {number} */ i) => {
    ctx.fillText(style.figure(row), scales.x.getPixelForValue(Math.max(row.high, row.estimate, 0)) + 10, bars[i].y);
  });
}

/**
 * The rows that become bars, and what is said of those left out. Without an order the largest tell most; answers in an
 * order stay in it, since by size, which is noisy, they would no longer show a shape.
 * @param {any[]} rows
 * @param {boolean} ordered
 * @returns {{shown: any[], note: string}}
 */
export function chosenBars(rows, ordered) {
  const most = ordered ? MOST_ORDERED : MOST_BARS;
  if (rows.length <= most) return { shown: rows, note: "" };
  const sorted = ordered ? rows : rows.toSorted((a, b) => b.estimate - a.estimate);
  const which = ordered ? `first ${most}` : `${most} largest`;
  return { shown: sorted.slice(0, most), note: `The ${which} of ${rows.length} answers; the table has all of them.` };
}

/** Long labels on several lines where there is room. @param {string} text @param {boolean} roomy @returns {string[]} */
export function wrapped(text, roomy) {
  if (!roomy) return [short(text, 26)];
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.length - 1;
    if (lines[last].length + word.length > 22 && lines[last]) lines.push(word);
    else lines[last] = `${lines[last]} ${word}`.trim();
  }
  // Two lines at most, of which the second says that there is more.
  const [first, ...rest] = lines;
  return (rest.length ? [first, rest.join(" ")] : [first]).map((line) => short(line, 26));
}

/** @param {any[]} rows @param {number} width @param {Style} style @returns {any} */
function settings(rows, width, style) {
  const grid = colour("--line");
  const soft = colour("--soft");
  const font = { family: getComputedStyle(document.body).fontFamily, size: 13 };
  const low = Math.min(0, ...rows.map((row) => row.low));
  const longest = Math.max(...rows.map((row) => style.figure(row).length));
  return {
    type: "bar",
    data: {
      labels: rows.map(({ value }) => wrapped(label(value), rows.length <= MOST_BARS)),
      datasets: [
        {
          data: rows.map(({ estimate }) => estimate),
          backgroundColor: colour("--bar"),
          borderRadius: 3,
          maxBarThickness: isRoomy(width) ? 20 : 10,
        },
      ],
    },
    options: {
      indexAxis: "y",
      animation: false,
      responsive: true,
      layout: { padding: { right: isRoomy(width) ? Math.max(110, 8 * longest) : 12, top: isRoomy(width) ? 0 : ABOVE } },
      maintainAspectRatio: false,
      events: ["mousemove", "mouseout", "touchstart"],
      interaction: { mode: "index", axis: "y", intersect: false },
      scales: {
        x: {
          min: low,
          suggestedMax: Math.max(...rows.map(({ high }) => high)),
          border: { display: false },
          grid: { color: grid, display: isRoomy(width) },
          ticks: { color: soft, font, includeBounds: false, callback: style.tick },
        },
        y: {
          border: { display: false },
          grid: { display: false },
          ticks: { display: isRoomy(width), color: colour("--ink"), font, autoSkip: false },
        },
      },
      plugins: {
        legend: { display: false },
        whiskers: { rows },
        tooltip: {
          displayColors: false,
          callbacks: {
            title: (/** @type {any[]} */ [item]) => label(rows[item.dataIndex].value),
            label: (/** @type {any} */ { dataIndex }) => style.words(rows[dataIndex]),
          },
        },
      },
    },
    plugins: [whiskers(style)],
  };
}

/** Shares in percent. @type {Style} */
const SHARES = {
  tick: (share) => `${Math.round(1000 * share) / 10} %`,
  figure,
  words: (row) => `${percent(row.estimate, row.standard_error)}, ${interval(row, percent)}`,
};

/** The chart of one question; keeps itself in the page's colours. */
export class BarChart {
  /** @param {string} title @param {Style} style */
  constructor(title, style = SHARES) {
    this.style = style;
    this.canvas = h("canvas", {
      role: "img",
      "aria-label": `Bar chart: ${title}. The table below has the same numbers.`,
    });
    this.note = h("p", { class: "soft" });
    this.box = h("div", { class: "plot" }, this.canvas);
    this.element = h("div", {}, this.box, this.note);
    /** @type {any} */
    this.chart = undefined;
    /** @type {any[]} */
    this.rows = [];
    this.ordered = false;
    this.roomy = true;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(this.rows, this.ordered));
    new ResizeObserver(() => {
      const width = this.box.clientWidth;
      if (width && isRoomy(width) !== this.roomy) this.draw(this.rows, this.ordered);
    }).observe(this.box);
  }

  /** Draw rows: {value, estimate, low, high, standard_error}. @param {any[]} rows @param {boolean} ordered whether their order
   * means something, and is to be seen */
  draw(rows, ordered = false) {
    if (!rows.length) return;
    [this.rows, this.ordered] = [rows, ordered];
    const { shown, note } = chosenBars(rows, ordered);
    this.note.textContent = note;
    const width = this.box.clientWidth;
    // Before it is in the page a chart has no width: then it is drawn for the room of a desk, and again once it is seen.
    this.roomy = !width || isRoomy(width);
    const low = shown.length > MOST_BARS ? LOW_ROW : ROW;
    this.box.style.height = `${shown.length * (this.roomy ? low : NARROW_ROW) + 44}px`;
    this.chart?.destroy();
    const made = settings(shown, this.roomy ? Math.max(width, ROOMY) : width, this.style);
    this.chart = new /** @type {any} */ (globalThis).Chart(this.canvas, made);
  }
}
