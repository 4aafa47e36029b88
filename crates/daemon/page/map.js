// The map: switches and links as Cytoscape.js draws them, and where everything stands.

import { colour, tenantHue } from "./parts.js";

/** Links up to which each has its label; of more the label is that of the chosen one. */
const LABELLED = 40;
const [WIDE, HIGH, NARROW] = [120, 150, 84];
/** Between hosts and what they are at. */
const NEAR = 90;

const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark" ||
  (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

/** A tenant's colour, as the canvas wants it. */
export const hue = (index) => (isDark() ? `hsl(${tenantHue(index)}, 65%, 65%)` : `hsl(${tenantHue(index)}, 60%, 40%)`);

function style() {
  const [text, muted, line, surface, accent, warn, bad] = ["text", "muted", "edge", "surface", "accent", "warn", "bad"].map(colour);
  const font = { "font-family": "system-ui, sans-serif", "font-size": 12, "min-zoomed-font-size": 7 };
  const behind = { "text-background-color": surface, "text-background-opacity": 0.9, "text-background-padding": 2 };
  return [
    { selector: "node", style: { ...font, label: "data(label)", shape: "round-rectangle", width: "data(wide)", height: "data(high)", "background-color": surface,
      "border-width": 1.5, "border-color": line, color: text, "text-valign": "center", "text-wrap": "wrap", "line-height": 1.25 } },
    { selector: "node.host", style: { shape: "ellipse", width: 10, height: 10, "background-color": line, "border-width": 0, color: muted, "font-size": 10,
      "text-valign": "bottom", "text-margin-y": 4, ...behind } },
    { selector: "node.away", style: { "border-style": "dashed", "border-color": bad, color: muted } },
    { selector: "edge", style: { ...font, "font-size": 11, "curve-style": "bezier", "control-point-step-size": 26, width: "data(width)",
      "line-color": line, "source-label": "data(label)", "source-text-offset": 50, color: muted, ...behind } },
    { selector: "edge.flat", style: { "source-label": "", label: "data(label)" } },
    { selector: "edge.low", style: { "line-color": accent } },
    { selector: "edge.busy", style: { "line-color": warn, color: warn } },
    { selector: "edge.full", style: { "line-color": bad, color: bad } },
    { selector: "edge.host", style: { width: 1 } },
    { selector: "edge.used", style: { "line-color": "data(colour)", width: 5, "z-index": 5 } },
    { selector: "edge.backup", style: { "line-color": "data(colour)", "line-style": "dashed", width: 3 } },
    { selector: "node.used", style: { "border-color": "data(colour)", "border-width": 3 } },
    { selector: ".dim", style: { opacity: 0.4 } },
    { selector: "edge.down", style: { "line-color": bad, "line-style": "dotted", width: 2.5, color: bad, opacity: 1, "z-index": 9 } },
    { selector: ":selected", style: { "overlay-color": accent, "overlay-opacity": 0.18, "overlay-padding": 5 } },
    { selector: "core", style: { "active-bg-opacity": 0 } },
  ];
}

/** Draws into `place`; `onChoose` hears of what is chosen: an element's data, or nothing. */
export function map(place, onChoose) {
  const cy = window.cytoscape({
    container: place,
    style: style(),
    minZoom: 0.1,
    maxZoom: 2.5,
    boxSelectionEnabled: false,
    pixelRatio: Math.min(window.devicePixelRatio, 2),
  });
  cy.on("select", "node, edge", (event) => onChoose(event.target.data()));
  cy.on("unselect", "node, edge", () => cy.$(":selected").empty() && onChoose(null));
  const fit = () => {
    cy.resize();
    cy.fit(undefined, 36);
    if (cy.zoom() > 1.4) {
      cy.zoom(1.4);
      cy.center();
    }
  };
  let [drawn, places] = ["", new Map()];
  const space = () => (place.clientWidth < 600 ? NARROW : WIDE);
  let spaced = space();
  const watch = new ResizeObserver(() => {
    // A phone that is turned: all is laid out anew.
    if (space() !== spaced) drawn = "";
    fit();
  });
  watch.observe(place);

  return {
    /** Makes the map what these are: `{nodes: [{id, label, classes, …}], links: [{id, from, to, label, classes, …}]}`. */
    draw({ nodes, links, rank }) {
      const shape = JSON.stringify([nodes.map((node) => node.id), links.map((link) => [link.id, link.from, link.to])]);
      const isMany = links.length > LABELLED;
      const node = ({ id, classes = "", ...data }) => {
        const rows = data.label.split("\n");
        const wide = Math.max(40, 18 + 7 * Math.max(...rows.map((row) => row.length)));
        return { group: "nodes", classes, data: { id, wide, high: 12 + 15 * rows.length, ...data } };
      };
      // Its label stands at the end of a link where fewer others are.
      const degree = new Map();
      for (const end of links.flatMap(({ from, to }) => [from, to])) degree.set(end, (degree.get(end) ?? 0) + 1);
      const inOrder = (from, to) => (degree.get(from) <= degree.get(to) ? [from, to] : [to, from]);
      const link = ({ id, from, to, classes = "", label = "", width = 2, ...data }) => ({
        group: "edges",
        // Between neighbours in a row there is room in the middle.
        classes: places.get(from)?.y === places.get(to)?.y ? `${classes} flat` : classes,
        data: { id, source: inOrder(from, to)[0], target: inOrder(from, to)[1], width, label: isMany && !classes.includes("down") ? "" : label, ...data },
      });
      if (shape !== drawn) places = layout(nodes, links, rank, (spaced = space()));
      const elements = [...nodes.map(node), ...links.map(link)];
      cy.batch(() => {
        if (shape !== drawn) {
          const chosen = cy.$(":selected").map((it) => it.id());
          cy.elements().remove();
          cy.add(elements.map((it) => (it.group === "nodes" ? { ...it, position: places.get(it.data.id) } : it)));
          chosen.forEach((id) => cy.getElementById(id).select());
        } else {
          for (const it of elements) {
            const is = cy.getElementById(it.data.id);
            for (const [key, value] of Object.entries(it.data)) if (is.data(key) !== value) is.data(key, value);
            const classes = it.classes.split(" ").filter(Boolean);
            const same = classes.length === is.classes().length && classes.every((name) => is.hasClass(name));
            if (!same) is.classes(classes);
          }
        }
      });
      if (shape !== drawn) fit();
      drawn = shape;
    },
    choose(id) {
      cy.$(":selected").unselect();
      const it = cy.getElementById(id);
      it.select();
      const { x1, y1, x2, y2 } = it.nonempty() ? it.renderedBoundingBox() : { x1: 0, y1: 0, x2: 0, y2: 0 };
      if (x1 < 0 || y1 < 0 || x2 > cy.width() || y2 > cy.height()) cy.animate({ center: { eles: it }, duration: 200 });
    },
    fit,
    zoom: (by) => cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }),
    restyle: () => cy.style(style()),
    close() {
      watch.disconnect();
      cy.destroy();
    },
  };
}

/**
 * Where nodes stand. Ranks where there are any (hosts below the switches that they are at, those below what only joins
 * switches), in an order that crosses few links; a row for a chain, a circle for the rest. The same for the same network.
 */
export function layout(nodes, links, rank = () => 0, wide = WIDE) {
  const near = new Map(nodes.map((node) => [node.id, new Set()]));
  for (const { from, to } of links) {
    near.get(from)?.add(to);
    near.get(to)?.add(from);
  }
  const chain = inChain(nodes.map((node) => node.id), near);
  const ranks = chain ? new Map(nodes.map((node) => [node.id, 0])) : ranked(nodes, near, rank);
  const rows = [];
  for (const node of nodes) (rows[ranks.get(node.id)] ??= []).push(node.id);
  const filled = rows.filter(Boolean).reverse();
  const places = new Map();
  if (filled.length === 1) {
    const radius = Math.max(wide, (filled[0].length * wide) / (2 * Math.PI));
    (chain ?? filled[0]).forEach((id, at, all) => {
      const angle = (2 * Math.PI * at) / all.length - Math.PI / 2;
      places.set(id, chain ? { x: at * wide * 1.4, y: 0 } : { x: radius * 1.3 * Math.cos(angle), y: radius * Math.sin(angle) });
    });
    return places;
  }
  order(filled, near);
  const widest = Math.max(...filled.map((row) => Math.min(row.length, 16)));
  const hosts = new Set(nodes.filter((node) => node.kind === "host").map((node) => node.id));
  let y = 0;
  filled.forEach((row, number) => {
    // A long row is broken into several.
    const broken = Math.ceil(row.length / 16);
    const length = Math.ceil(row.length / broken);
    row.forEach((id, at) => {
      const [line, column] = [at % broken, Math.floor(at / broken)];
      const gap = (widest * wide) / length;
      places.set(id, { x: (column + 0.5 + (broken > 1 ? line / broken - 0.25 : 0)) * gap, y: y + line * HIGH * 0.6 });
    });
    y += HIGH * 0.6 * (broken - 1) + (filled[number + 1]?.every((id) => hosts.has(id)) ? NEAR : HIGH);
  });
  return places;
}

/** By how many steps each is away from the lowest rank. */
function ranked(nodes, near, rank) {
  const ranks = new Map();
  let front = [];
  const least = Math.min(...nodes.map(rank));
  // Where all ranks are the same, the nodes with the fewest neighbours are the lowest.
  const degree = (node) => near.get(node.id).size;
  const fewest = Math.min(...nodes.map(degree));
  const ranksDiffer = nodes.some((node) => rank(node) !== least);
  const isLowest = (node) => (ranksDiffer ? rank(node) === least : degree(node) === fewest);
  for (const node of nodes) if (isLowest(node)) ranks.set(node.id, 0), front.push(node.id);
  while (front.length > 0) {
    const next = [];
    for (const id of front) {
      for (const other of near.get(id)) {
        if (!ranks.has(other)) ranks.set(other, ranks.get(id) + 1), next.push(other);
      }
    }
    front = next;
  }
  for (const node of nodes) if (!ranks.has(node.id)) ranks.set(node.id, 0);
  return ranks;
}

/** The nodes of a chain from one end to the other; `null` of anything else. */
function inChain(ids, near) {
  const ends = ids.filter((id) => near.get(id).size === 1);
  if (ids.length === 1) return ids;
  if (ends.length !== 2 || ids.some((id) => near.get(id).size > 2)) return null;
  const chain = [ends[0]];
  for (let before = null, at = ends[0]; ; ) {
    const next = [...near.get(at)].find((id) => id !== before);
    if (!next) break;
    chain.push(next);
    [before, at] = [at, next];
  }
  return chain.length === ids.length ? chain : null;
}

/** Puts each row in the order of its neighbours' places, some times over. */
function order(rows, near) {
  const at = new Map();
  const number = () => rows.forEach((row) => row.forEach((id, place) => at.set(id, (place + 0.5) / row.length)));
  number();
  for (let round = 0; round < 6; round += 1) {
    for (const row of round % 2 === 0 ? rows : [...rows].reverse()) {
      const middle = (id) => {
        const around = [...near.get(id)].map((other) => at.get(other));
        return around.length === 0 ? at.get(id) : around.reduce((sum, place) => sum + place, 0) / around.length;
      };
      const middles = new Map(row.map((id) => [id, middle(id)]));
      row.sort((a, b) => middles.get(a) - middles.get(b) || at.get(a) - at.get(b));
      number();
    }
  }
}

/** How wide a link is drawn. */
export const width = (bandwidth) => (bandwidth ? Math.max(1.5, Math.min(5, Math.log10(bandwidth) - 5.5)) : 2);

const used = (load, bandwidth) => (load && bandwidth ? Math.max(...load) / bandwidth : 0);

/** What stands at a link of which this much is used. */
export function loaded(load, bandwidth) {
  const percent = Math.round(100 * used(load, bandwidth));
  return percent > 0 ? `${percent}\u202f%` : "";
}

/** How busy it is. */
export function busy(load, bandwidth) {
  const part = used(load, bandwidth);
  return part > 0.8 ? "full" : part > 0.5 ? "busy" : part > 0 ? "low" : "";
}
