// Small parts of which views are made. All text goes through text nodes: names come from configuration, and markup in them
// is shown, never obeyed.

/** An element. Properties beginning with `on` are listeners; `null` and `false` among children are left out. */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list" && key !== "form") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  add(element, ...children);
  return element;
}

/** Puts children into an element, without those that are not there. */
export const add = (root, ...children) => root.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));

/** Sets a text only where it is another: what stays costs no layout. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const THIN = "\u202f";

/** A number for people: four digits at most, then k, M, G. */
export function short(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const units = ["", "k", "M", "G", "T"];
  let at = 0;
  let value = number;
  while (Math.abs(value) >= 9999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  const digits = at === 0 ? (Number.isInteger(value) || value >= 99.5 ? 0 : 1) : value < 99.95 ? 1 : 0;
  const text = value.toFixed(digits);
  return at === 0 ? text : `${text}${THIN}${units[at]}`;
}

/** Events per second. */
export const perSecond = (rate) => (rate === undefined || rate === null ? "–" : rate === 0 ? "0" : rate < 0.05 ? "<0.1" : short(rate));

/** Bits per second. */
export function bits(number) {
  if (number === null || number === undefined) return "–";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
  let [at, value] = [0, number];
  while (value >= 1000 && at < units.length - 1) [at, value] = [at + 1, value / 1000];
  return `${Number(value.toPrecision(3))}${THIN}${units[at]}`;
}

/** Microseconds, in the unit that fits. */
export function time(us) {
  if (us === null || us === undefined) return "–";
  if (us === 0) return "0";
  if (us < 1000) return `${us < 1 ? Number(us.toPrecision(2)) : us < 10 ? us.toFixed(1) : Math.round(us)}${THIN}µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 1 : 0)}${THIN}ms`;
  return `${(us / 1e6).toFixed(1)}${THIN}s`;
}

export const clock = (ms) =>
  new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** A datapath id without the zeros that lead it: `a:01`, `1`. */
export const shortDpid = (dpid) => dpid.replace(/^(00:)+/, "").replace(/^0(?=[0-9a-f])/, "");

/** A text with all datapath ids in it written so. */
export const shortDpids = (text) => text.replace(/\b(?:[0-9a-f]{2}:){7}[0-9a-f]{2}\b/g, shortDpid);

/** `00:00:00:00:00:00:00:01 port 2` as `1 port 2`. */
export const shortPort = (port) => port.replace(/^(\S+) port (\S+)$/, (_, dpid, number) => `${shortDpid(dpid)} port ${number}`);

/** A colour of style.css as a canvas wants it. */
export function colour(name) {
  probe ??= document.body.appendChild(el("span.probe", { hidden: true }));
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
let probe;

/** The number of a tenant's colour, by its place in the file. */
export const tenantHue = (index) => Math.round((205 + index * 137.508) % 360);

/** A bar for a part of a whole, with what it says in words. */
export function share(part, whole) {
  const percent = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
  const bar = el("meter", { min: 0, max: 100, high: 80, low: 60, optimum: 0, value: percent });
  bar.setAttribute("aria-label", `${Math.round(percent)} percent`);
  return bar;
}

export const badge = (kind, text) => el(`span.badge.${kind}`, {}, text);

/** A heading, and what belongs to it. */
export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

export const empty = (text) => el("p.empty", {}, text);

/**
 * A table whose rows stay the same elements while their cells change. `columns` are `{title, kind, cell}`; `cell` gives a
 * text or a node, and is asked anew at each update.
 */
export function table(columns, { key, onRow = null, caption, none = "Nothing here." }) {
  const body = el("tbody");
  const head = el("tr", {}, columns.map((column) => el("th", { scope: "col", className: column.kind ?? "" }, column.title)));
  const whole = el("table", {}, el("caption.hidden", {}, caption), el("thead", {}, head), body);
  const nothing = empty(none);
  const root = el("div.table", {}, whole, nothing);
  const rows = new Map();

  const make = (item) => {
    const cells = columns.map((column) => el("td", { className: column.kind ?? "", "data-title": column.title }));
    const row = el("tr", {}, cells);
    if (onRow) {
      row.className = "link";
      row.addEventListener("click", (event) => event.target.closest("a, button") || onRow(row.item));
    }
    return Object.assign(row, { cells_: cells, item });
  };

  root.update = (items) => {
    const known = new Set();
    let before = null;
    for (const item of items) {
      const id = key(item);
      known.add(id);
      let row = rows.get(id);
      if (!row) rows.set(id, (row = make(item)));
      row.item = item;
      columns.forEach((column, at) => {
        const is = column.cell(item);
        const cell = row.cells_[at];
        if (typeof is === "string") put(cell, is);
        else if (cell.said !== JSON.stringify(is.key ?? null) || is.key === undefined) {
          cell.replaceChildren(is.node ?? is);
          cell.said = JSON.stringify(is.key ?? null);
        }
      });
      const next = before ? before.nextSibling : body.firstChild;
      if (next !== row) body.insertBefore(row, next);
      before = row;
    }
    for (const [id, row] of rows) {
      if (!known.has(id)) {
        row.remove();
        rows.delete(id);
      }
    }
    whole.hidden = items.length === 0;
    nothing.hidden = items.length > 0;
    return root;
  };
  return root;
}

/** A figure with its name: `set` changes it. */
export function tile(name) {
  const value = el("dd", {}, "–");
  const root = el("div.tile", {}, el("dt", {}, name), value);
  root.set = (text, kind = "") => {
    put(value, text);
    root.className = `tile ${kind} ${text.length > 9 ? "long" : ""}`;
  };
  return root;
}

/** The library of charts, which the first view does not need. */
function library() {
  loading ??= new Promise((done, failed) => {
    const style = el("link", { rel: "stylesheet", href: "/page/vendor/uPlot.css" });
    const script = el("script", { src: "/page/vendor/uPlot.js", onload: done, onerror: failed });
    document.head.append(style, script);
  });
  return loading;
}
let loading = null;

/** Lines over time. `lines` are `{name, colour}`; `update` takes the times and a list of values for each line. */
export function chart(lines, { format, label }) {
  const place = el("div.plot", { role: "img", "aria-label": label });
  const legend = el("ul.legend", {}, lines.map((line) => {
    const dot = el("i");
    dot.style.background = line.colour();
    return el("li", {}, dot, line.name);
  }));
  const root = el("figure.chart", {}, el("figcaption", {}, label), legend, place);
  let plot = null;
  const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const options = () => ({
    width: Math.max(240, place.clientWidth),
    height: 180,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: { x: { time: true }, y: { range: (_, least, most) => [0, Math.max(most * 1.1, 1)] } },
    axes: [
      { ...axis, size: 30, space: 90, incrs: [1, 5, 10, 30, 60, 120], values: (_, splits) => splits.map((at) => clock(at * 1000)) },
      { ...axis, size: 64, values: (_, splits) => splits.map(format) },
    ],
    series: [{}, ...lines.map((line) => ({ label: line.name, stroke: line.colour, width: 1.6, points: { show: false } }))],
  });
  const watch = new ResizeObserver(() => plot?.setSize({ width: Math.max(240, place.clientWidth), height: 180 }));
  root.update = async (times, values) => {
    const data = [times, ...values];
    if (plot) return plot.setData(data);
    await library();
    if (plot || !place.isConnected) return;
    plot = new window.uPlot(options(), data, place);
    watch.observe(place);
  };
  root.close = () => {
    watch.disconnect();
    plot?.destroy();
    plot = null;
  };
  return root;
}
