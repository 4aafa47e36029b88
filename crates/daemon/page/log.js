// What has happened: the log of changes and faults.

import { clock, el, empty, put, shortDpids } from "./parts.js";
import { state, watch } from "./state.js";

const NAMES = { info: "", warn: "warning", error: "error" };

/** Lines as a list. */
export function lines(all) {
  return el("ol.log", {}, all.map((line) => {
    const fields = Object.entries(line.fields).map(([name, value]) => [el("span.name", {}, `${name} `), el("span.value", { title: value }, shortDpids(value)), " "]);
    return el(`li.${line.level}`, {}, el("time", { dateTime: new Date(line.time_ms).toISOString() }, clock(line.time_ms)),
      el("div", {}, el("span.message", {}, NAMES[line.level] && el("b", {}, `${NAMES[line.level]}: `), line.message), el("span.fields", {}, fields)));
  }));
}

export function logView(root) {
  const level = el("select", { onchange: () => update(true) }, el("option", { value: "all" }, "everything"), el("option", { value: "faults" }, "faults only"));
  const find = el("input", { type: "search", placeholder: "Find, such as a tenant or a switch", "aria-label": "Find", oninput: () => update(true) });
  const count = el("span.muted");
  const list = el("div");
  root.append(el("h1", {}, "Changes and faults"), el("div.controls", {}, el("label", {}, "Show ", level), find, count), el("div.card", {}, list));
  let shown = 0;
  function update(anew = false) {
    const last = state.log.at(-1)?.number ?? 0;
    if (!anew && shown === last) return;
    shown = last;
    const words = find.value.toLowerCase();
    const fits = (line) => (level.value === "all" || line.level !== "info") &&
      (!words || `${line.message} ${Object.entries(line.fields).flat().join(" ")}`.toLowerCase().includes(words));
    const all = state.log.filter(fits).reverse();
    put(count, `${all.length} of ${state.log.length} lines`);
    list.replaceChildren(all.length > 0 ? lines(all) : empty("No such line."));
  }
  const unwatch = watch(() => update());
  update(true);
  return { close: unwatch };
}
