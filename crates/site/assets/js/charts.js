// Figures over time, drawn as SVG.

/** Five minutes at one point every two seconds. */
const POINTS = 150;
const [WIDTH, HEIGHT, TOP] = [300, 90, 6];

export class Chart {
  constructor(element, write) {
    this.value = element.querySelector("[data-value]");
    this.write = write;
    this.points = [];
    this.limit = null;
    const svg = element.querySelector("svg");
    const shape = (name, className) => {
      const one = document.createElementNS(svg.namespaceURI, name);
      one.setAttribute("class", className);
      svg.append(one);
      return one;
    };
    this.area = shape("path", "chart-area");
    this.line = shape("path", "chart-line");
    this.bar = shape("line", "chart-limit");
    this.bar.setAttribute("x2", WIDTH);
  }

  /** A new figure; nothing where there is none to tell. */
  add(value, limit = null) {
    this.points.push(value);
    if (this.points.length > POINTS) this.points.shift();
    this.limit = limit;
    this.value.textContent = value === null ? "–" : this.write(value);
    this.draw();
  }

  draw() {
    const most = Math.max(1, this.limit ?? 0, ...this.points.filter((point) => point !== null)) * 1.08;
    const x = (at) => WIDTH - ((this.points.length - 1 - at) * WIDTH) / (POINTS - 1);
    const y = (value) => (HEIGHT - (value / most) * (HEIGHT - TOP)).toFixed(1);
    const known = this.points.map((value, at) => [at, value]).filter(([, value]) => value !== null);
    const line = known.map(([at, value], first) => `${first ? "L" : "M"}${x(at).toFixed(1)} ${y(value)}`).join("");
    this.line.setAttribute("d", line);
    this.area.setAttribute("d", line && `${line}L${WIDTH} ${HEIGHT}L${x(known[0][0]).toFixed(1)} ${HEIGHT}Z`);
    this.bar.toggleAttribute("hidden", this.limit === null);
    for (const end of ["y1", "y2"]) this.bar.setAttribute(end, y(this.limit ?? 0));
  }
}
