// Charts as SVG, drawn for the available pixels: a line, its limit, axes with units, and the value
// at the pointer. Missing data is a gap in the line.
import { lang, say } from "./texts.js";

/** Minimum and maximum time span of a chart, in milliseconds. */
const [LEAST_SPAN, SPAN] = [120_000, 600_000];
/** Rates vary from second to second; the chart shows their mean over this time. */
const SMOOTH = 10_000;
/** Samples arrive every second or two; a longer pause is a gap. */
const GAP = 5_000;
const [LEFT, RIGHT, TOP, BOTTOM] = [38, 6, 8, 20];
/** Minimum time between two updates for screen readers. */
const SAY_EVERY = 15_000;

const clock = (style) => new Intl.DateTimeFormat(lang, { timeZone: "Asia/Seoul", hourCycle: "h23", ...style });
const toMinutes = clock({ hour: "2-digit", minute: "2-digit" });
export const toSeconds = clock({ hour: "2-digit", minute: "2-digit", second: "2-digit" });

const short = new Intl.NumberFormat(lang, { notation: "compact", maximumFractionDigits: 1 });

/** The smallest round number of at least `most` whose half is round too. */
function roundUp(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= most);
}

/** The same for seconds: whole minutes, then whole hours. */
function roundUpSeconds(most) {
  const minutes = [1, 2, 4, 6, 10, 20, 30, 60].find((minutes) => minutes * 60 >= most);
  return minutes ? minutes * 60 : Math.ceil(most / 3_600) * 3_600;
}

/** Format of each kind of figure, and the minimum of its axis. */
export const KINDS = {
  people: { least: 10, roundUp, axis: (value) => short.format(value) },
  rate: { least: 2, roundUp, axis: (value) => short.format(value), smooth: true },
  seconds: {
    least: 60,
    roundUp: roundUpSeconds,
    axis: (value) => (value < 3_600 ? `${Math.floor(value / 60)}:${String(value % 60).padStart(2, "0")}` : `${value / 3_600}h`),
  },
};

export class Chart {
  constructor(element, { kind, write, limit }) {
    this.value = element.querySelector("[data-value]");
    this.svg = element.querySelector("svg");
    this.label = element.querySelector("h3").textContent;
    this.element = element;
    Object.assign(this, { kind, write, hasLimit: Boolean(limit), points: [], said: 0, pointer: null });
    this.layers = Object.fromEntries(
      ["paused", "grid", "area", "line", "limit", "dot", "ticks", "hair", "read"].map((name) => [name, this.shape("g", { class: `chart-${name}` })]),
    );
    new ResizeObserver(() => this.draw()).observe(this.svg);
    this.svg.addEventListener("pointermove", ({ clientX }) => this.point(clientX - this.svg.getBoundingClientRect().left));
    this.svg.addEventListener("pointerleave", () => this.point(null));
  }

  shape(name, attributes, parent = this.svg) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    parent.append(one);
    return one;
  }

  /** Adds a sample; `value` and `limit` are null where they are unknown. */
  add(at, value, { limit = null, paused = false } = {}) {
    // The stream repeats the past, which is older than samples that were polled meanwhile.
    const place = this.points.findLastIndex((point) => point.at < at) + 1;
    this.points.splice(place, 0, { at, raw: value, value, limit, paused });
    while (this.points[0].at < this.points.at(-1).at - SPAN) this.points.shift();
    if (this.kind.smooth && value !== null) this.points[Math.min(place, this.points.length - 1)].value = this.mean(at);
  }

  /** The mean of the known values in the last seconds before `at`. */
  mean(at) {
    const late = this.points.filter((point) => point.at <= at && point.at > at - SMOOTH && point.raw !== null);
    return late.reduce((sum, { raw }) => sum + raw, 0) / Math.max(1, late.length);
  }

  /** Draws the chart. */
  show() {
    const { value } = this.points.at(-1);
    const text = value === null ? "–" : this.write(value);
    this.value.textContent = text;
    this.svg.dataset.points = this.points.length;
    this.draw();
    if (performance.now() - this.said < SAY_EVERY && this.said) return;
    this.said = performance.now();
    const most = this.write(Math.max(...this.points.map((point) => point.value ?? 0)));
    const minutes = Math.ceil(this.span() / 60_000);
    this.svg.setAttribute("aria-label", say("chart_said", { label: this.label, now: text, most, minutes }));
  }

  span() {
    return Math.min(SPAN, Math.max(LEAST_SPAN, this.points.at(-1).at - this.points[0].at));
  }

  point(x) {
    this.pointer = x;
    this.draw();
  }

  draw() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!this.points.length || width <= LEFT + RIGHT) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    for (const layer of Object.values(this.layers)) layer.replaceChildren();
    const [now, span] = [this.points.at(-1).at, this.span()];
    const known = this.points.flatMap(({ value, limit }) => [value, this.hasLimit ? limit : null]).filter((value) => value !== null);
    const top = this.kind.roundUp(Math.max(this.kind.least, ...known));
    const scale = {
      x: (at) => width - RIGHT - ((now - at) / span) * (width - LEFT - RIGHT),
      y: (value) => height - BOTTOM - (value / top) * (height - TOP - BOTTOM),
      at: (x) => now - ((width - RIGHT - x) / (width - LEFT - RIGHT)) * span,
    };
    this.drawAxes(scale, { width, height, now, span, top });
    this.drawPaused(scale, height);
    this.drawLine("line", "value", scale);
    if (this.hasLimit) this.drawLine("limit", "limit", scale);
    this.drawPointer(scale, height);
  }

  drawAxes({ x, y }, { width, height, now, span, top }) {
    for (const value of [0, top / 2, top]) {
      this.shape("line", { x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }, this.layers.grid);
      this.shape("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, this.layers.ticks).textContent = this.kind.axis(value);
    }
    const room = Math.floor((width - LEFT - RIGHT) / 48);
    const step = 60_000 * [1, 2, 5, 10].find((minutes) => span / (minutes * 60_000) <= room || minutes === 10);
    for (let at = Math.ceil((now - span) / step) * step; at <= now; at += step) {
      const place = x(at);
      if (place < LEFT + 14 || place > width - 16) continue;
      this.shape("line", { x1: place, x2: place, y1: height - BOTTOM, y2: height - BOTTOM + 4 }, this.layers.grid);
      this.shape("text", { x: place, y: height - 4, "text-anchor": "middle" }, this.layers.ticks).textContent = toMinutes.format(at);
    }
  }

  /** Shades the times in which admissions were paused. */
  drawPaused({ x }, height) {
    let from = null;
    for (const [place, point] of this.points.entries()) {
      if (point.paused) from ??= point.at;
      const ends = place === this.points.length - 1 || !this.points[place + 1].paused;
      if (!point.paused || !ends) continue;
      const span = { x: x(from), width: Math.max(1, x(point.at) - x(from)) };
      this.shape("rect", { ...span, y: TOP, height: height - TOP - BOTTOM }, this.layers.paused);
      from = null;
    }
  }

  drawLine(layer, name, { x, y }) {
    let runs = [];
    let before = null;
    for (const point of this.points) {
      if (point[name] === null) before = null;
      else {
        if (before === null || point.at - before > GAP) runs.push([]);
        runs.at(-1).push([x(point.at).toFixed(1), y(point[name]).toFixed(1)]);
        before = point.at;
      }
    }
    runs = runs.map((run) => ({ run, path: `M${run.map((place) => place.join(" ")).join("L")}` }));
    for (const { run, path } of runs) {
      this.shape("path", { d: run.length === 1 ? `${path}h0.1` : path }, this.layers[layer]);
      if (layer !== "line") continue;
      const ground = y(0).toFixed(1);
      this.shape("path", { d: `${path}L${run.at(-1)[0]} ${ground}L${run[0][0]} ${ground}Z` }, this.layers.area);
    }
    const last = this.points.at(-1);
    if (layer === "line" && last.value !== null) {
      this.shape("circle", { cx: x(last.at), cy: y(last.value), r: 3 }, this.layers.dot);
    }
  }

  /** Shows the value at the pointer. */
  drawPointer({ x, y, at }, height) {
    if (this.pointer === null) return;
    const wanted = at(this.pointer);
    const near = this.points.reduce((best, point) => (Math.abs(point.at - wanted) < Math.abs(best.at - wanted) ? point : best));
    const place = x(near.at);
    this.shape("line", { x1: place, x2: place, y1: TOP, y2: height - BOTTOM }, this.layers.hair);
    if (near.value !== null) this.shape("circle", { cx: place, cy: y(near.value), r: 3.5 }, this.layers.hair);
    const text = `${toSeconds.format(near.at)} · ${near.value === null ? "–" : this.write(near.value)}`;
    const anchor = place > LEFT + 120 ? "end" : "start";
    this.shape("text", { x: place + (anchor === "end" ? -6 : 6), y: TOP + 8, "text-anchor": anchor }, this.layers.read).textContent = text;
  }
}
