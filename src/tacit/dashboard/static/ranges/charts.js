/** Pictures of ordered answers: bars of which a range can be dragged, and the cumulative distribution with its band. */

import { colour } from "../page/chart.js";
import { h } from "../page/dom.js";
import { interval, percent } from "../page/format.js";

const MOST_WHISKERS = 64;
const MOST_STEPS = 64;
const MOST_DOTS = 24;

/** @returns {any} */
const font = () => ({ family: getComputedStyle(document.body).fontFamily, size: 13 });

/** @param {number} share */
const tick = (share) => `${Math.round(1000 * share) / 10} %`;

/** Axes; marks that are words may turn. @param {(place: number) => string} mark @param {string} kind @returns {any} */
export const axes = (mark, kind, turn = kind === "ordered" ? 45 : 0) => ({
  x: {
    border: { color: colour("--line") },
    grid: { display: false },
    ticks: {
      ...{ color: colour("--ink"), font: font(), maxRotation: turn, autoSkipPadding: 14 },
      callback: (/** @type {any} */ _, /** @type {number} */ place) => mark(place),
    },
  },
  y: {
    border: { display: false },
    grid: { color: colour("--line") },
    ticks: { color: colour("--soft"), font: font(), maxTicksLimit: 6, callback: tick },
  },
});

/**
 * @param {(place: number) => string} title
 * @param {(place: number) => string} label
 * @param {(item: any) => boolean} filter
 */
export const tooltip = (title, label, filter = () => true) => ({
  displayColors: false,
  filter,
  callbacks: {
    title: (/** @type {any[]} */ [item]) => (item ? title(item.dataIndex) : ""),
    label: (/** @type {any} */ { dataIndex }) => label(dataIndex),
  },
});

/** @param {any} scales @param {any} plugins @returns {any} */
export const plainly = (scales, plugins) => ({
  animation: false,
  responsive: true,
  maintainAspectRatio: false,
  events: ["mousemove", "mouseout"],
  interaction: { mode: "index", intersect: false },
  scales,
  plugins: { legend: { display: false }, ...plugins },
});

/** Vertical whiskers, where bars are few enough to have them. */
const whiskers = {
  id: "upright",
  /** @param {any} chart */
  afterDatasetsDraw(chart) {
    const { ctx, scales, options } = chart;
    const bars = chart.getDatasetMeta(0).data;
    ctx.save();
    ctx.strokeStyle = colour("--ink");
    ctx.lineWidth = 1.25;
    ctx.beginPath();
    options.plugins.upright.bars.forEach((/** @type {any} */ { low, high }, /** @type {number} */ i) => {
      if (!Number.isFinite(low) || !Number.isFinite(high)) return;
      ctx.moveTo(bars[i].x, scales.y.getPixelForValue(low));
      ctx.lineTo(bars[i].x, scales.y.getPixelForValue(high));
    });
    ctx.stroke();
    ctx.restore();
  },
};

/** What all pictures share: a canvas with a name, drawn anew when the page changes its colours. */
export class Picture {
  /** @param {string} name @param {string} kind */
  constructor(name, kind) {
    this.canvas = h("canvas", { role: "img", "aria-label": name });
    this.element = h("div", { class: `plot ${kind}` }, this.canvas);
    /** @type {any} */
    this.chart = undefined;
    this.redraw = () => {};
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** @param {any} settings */
  paint(settings) {
    this.chart?.destroy();
    this.chart = new /** @type {any} */ (globalThis).Chart(this.canvas, settings);
  }
}

/** Bars in the order of the answers; those of the chosen range stand out. */
export class Histogram extends Picture {
  /** @param {string} title @param {(first: number, last: number) => void} dragged over leaves */
  constructor(title, dragged) {
    super(`Histogram: ${title}. The table below has the same numbers.`, "upright");
    this.dragged = dragged;
    /** @type {any[]} */
    this.bars = [];
    this.chosen = [0, 0];
    this.start = -1;
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.grab(event));
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (this.start = -1));
  }

  /** The bar under a pointer. @param {PointerEvent} event @returns {number} */
  under({ clientX }) {
    const at = this.chart.scales.x.getValueForPixel(clientX - this.canvas.getBoundingClientRect().left);
    return Math.min(Math.max(at, 0), this.bars.length - 1);
  }

  /** @param {PointerEvent} event */
  grab(event) {
    if (!this.chart || event.button) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.start = this.under(event);
    this.drag(event);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (this.start < 0) return;
    const ends = [this.start, this.under(event)].sort((a, b) => a - b);
    this.dragged(this.bars[ends[0]].first, this.bars[ends[1]].last);
  }

  /** @param {any[]} bars @param {import("./ordered.js").Leaves} leaves */
  draw(bars, leaves) {
    this.bars = bars;
    this.redraw = () => this.draw(bars, leaves);
    const title = (/** @type {number} */ i) => leaves.words(bars[i].first, bars[i].last);
    const held = bars.length <= MOST_WHISKERS ? bars : [];
    const plugins = { upright: { bars: held }, tooltip: tooltip(title, (i) => barWords(bars[i])) };
    const share = bars.length > MOST_WHISKERS ? 1 : 0.86;
    this.paint({
      type: "bar",
      data: {
        labels: bars.map(({ first }) => leaves.mark(first)),
        datasets: [{ data: bars.map(({ estimate }) => estimate), barPercentage: share, categoryPercentage: 1 }],
      },
      options: plainly(scaled(bars, leaves), plugins),
      plugins: [whiskers],
    });
    this.choose(this.chosen[0], this.chosen[1]);
  }

  /** Let the bars of a range stand out. @param {number} first @param {number} last leaves, both ends included */
  choose(first, last) {
    this.chosen = [first, last];
    if (!this.chart) return;
    const [inside, outside] = [colour("--bar"), colour("--bar-faint")];
    this.chart.data.datasets[0].backgroundColor = this.bars.map((bar) =>
      bar.last >= first && bar.first <= last ? inside : outside,
    );
    this.chart.update("none");
  }

  /**
   * Where the middles of the first and the last of so many leaves are, in pixels from the left and the right.
   * @param {number} leaves
   * @returns {[number, number]}
   */
  margins(leaves) {
    const { left, right } = this.chart.chartArea;
    const half = (right - left) / (2 * leaves);
    return [left + half, this.chart.width - right + half];
  }
}

/** @param {any[]} bars @param {import("./ordered.js").Leaves} leaves */
function scaled(bars, leaves) {
  const { x, y } = axes((place) => leaves.mark(bars[place].first), leaves.kind);
  const ends = bars.length > MOST_WHISKERS ? [] : bars.flatMap(({ low, high }) => [low, high]).filter(Number.isFinite);
  const values = [...bars.map(({ estimate }) => estimate), ...ends];
  return { x, y: { ...y, suggestedMin: Math.min(0, ...values), suggestedMax: Math.max(...values) } };
}

/** @param {any} bar */
const barWords = (bar) =>
  [percent(bar.estimate, bar.standard_error), ...(bar.low === null ? [] : [interval(bar, percent)])].join(", ");

/** The cumulative distribution: a monotone curve in a band. */
export class Cumulative extends Picture {
  /** @param {string} title */
  constructor(title) {
    super(`Cumulative distribution: ${title}. The table of quantiles says the same.`, "curve");
  }

  /** @param {any} cdf columns of the collector's answer @param {import("./ordered.js").Leaves} leaves */
  draw(cdf, leaves) {
    this.redraw = () => this.draw(cdf, leaves);
    const { index, consistent, low, high } = cdf;
    // Shares of numbers in buckets rise between the edges, those of single answers at the answers.
    const stepped = index.length <= MOST_STEPS && leaves.kind !== "buckets" ? "before" : false;
    const plain = { stepped, pointRadius: 0, clip: 6 };
    const line = (/** @type {any[]} */ data, /** @type {any} */ more) => ({ data, ...plain, ...more });
    const [edge, ink] = [{ borderWidth: 0, pointHitRadius: 0 }, colour("--bar")];
    const dots = { pointRadius: index.length <= MOST_DOTS ? 3.5 : 0, pointBackgroundColor: ink };
    const { x, y } = axes((place) => leaves.upTo(index[place]), leaves.kind);
    const said = (/** @type {number} */ i) =>
      `${percent(consistent[i])}, ${interval({ low: low[i], high: high[i] }, percent)}`;
    const title = (/** @type {number} */ i) => leaves.words(0, index[i]);
    this.paint({
      type: "line",
      data: {
        labels: index,
        datasets: [
          line(consistent, { borderColor: ink, borderWidth: 2.5, fill: false, ...dots }),
          line(low, { ...edge, fill: false }),
          line(high, { ...edge, fill: "-1", backgroundColor: colour("--band") }),
        ],
      },
      options: plainly(
        { x, y: { ...y, min: 0, max: 1 } },
        { tooltip: tooltip(title, said, ({ datasetIndex }) => datasetIndex === 0) },
      ),
    });
  }
}
