// All tenants side by side, and one tenant in full.

import { badge, chart, clock, colour, el, empty, perSecond, put, section, share, short, shortDpid, table, tenantHue, tile, time } from "./parts.js";
import { traceView, whyView } from "./explain.js";
import { hue } from "./map.js";
import { ask, part } from "./server.js";
import { hasNetwork, mayChange, sees, state, watch } from "./state.js";

/** What keeps a PACKET_IN from a tenant. Why requests are refused is said of each of them: see explain.js. */
const WORDS = {
  no_tenant: "PACKET_IN: no tenant owns the packet",
  tenant_absent: "PACKET_IN: no controller is connected",
  queue_full: "PACKET_IN: the controller reads too slowly",
  rate_limited: "PACKET_IN: more than the tenant’s limit",
  port_config: "PACKET_IN: the tenant turned the port off",
};

const words = (reason) => WORDS[reason] ?? "";

export function tenantsView(root) {
  const rates = (it) => state.rates.tenants.get(it.name);
  const at = (it) => state.summary.tenants.indexOf(it);
  const columns = [
    { title: "Tenant", kind: "lead", cell: (it) => ({ key: [it.name, at(it)], node: named(it.name, at(it)) }) },
    { title: "Controllers", kind: "number", cell: (it) => ({ key: [it.connected, it.controllers], node: connected(it) }) },
    { title: "Sends/s", kind: "number", cell: (it) => perSecond(rates(it)?.in) },
    { title: "Gets/s", kind: "number", cell: (it) => perSecond(rates(it)?.out) },
    { title: "Refused/s", kind: "number", cell: (it) => perSecond(rates(it)?.refused) },
    { title: "Added p50", kind: "number", cell: (it) => time(it.added_south?.p50_us) },
    { title: "Added p99", kind: "number", cell: (it) => time(it.added_south?.p99_us) },
    { title: "Entries", kind: "number", cell: (it) => short(it.entries) },
    { title: "Share used", kind: "number gauge", cell: (it) => ({ key: it.fullest ?? null, node: used(it.fullest) }) },
  ];
  const all = table(columns, { key: (it) => it.name, caption: "Tenants", none: "No tenant is configured.", onRow: (it) => (location.hash = `#/tenants/${part(it.name)}`) });
  root.append(el("h1", {}, "Tenants"), el("p.lead", {}, "Added: the time that a request spends in Weir on its way to the switch, in the last seconds. Share: of the rules that the tenant may have, where it has the most."), el("div.card", {}, all));
  const update = () => state.summary && all.update(state.summary.tenants);
  const unwatch = watch(update);
  update();
  return { restyle: update, close: unwatch };
}

function named(name, index) {
  const dot = el("i.dot");
  dot.style.background = `hsl(${tenantHue(index)} 60% 50%)`;
  return el("a", { href: `#/tenants/${part(name)}` }, dot, name);
}

function connected({ connected, controllers }) {
  const kind = connected === controllers ? (controllers > 0 ? "ok" : "none") : connected === 0 ? "bad" : "warn";
  return badge(kind, `${connected} of ${controllers}`);
}

const percent = ({ rules, may }) => `${rules > 0 ? perSecond((100 * rules) / may) : 0}\u202f%`;

function used(fullest) {
  if (!fullest) return "–";
  return el("span", { title: `on ${fullest.switch}: ${fullest.rules} of ${fullest.may}` }, `${percent(fullest)} `, share(fullest.rules, fullest.may));
}

const REFRESH = 3000;

export function tenantView(root, { tenant: name }) {
  const index = () => state.summary?.tenants.findIndex((it) => it.name === name) ?? -1;
  const title = el("h1", {}, name);
  const edit = el("a.button", { href: `#/edit/${part(name)}` }, "Edit its network");
  const onMap = el("a.button", { href: `#/network/${part(name)}` }, "Show on the map");
  const figures = [tile("Sends/s"), tile("Gets/s"), tile("Refused/s"), tile("Added p50"), tile("Added p99"), tile("Entries"), tile("Share used")];
  const kinds = table([
    { title: "Message", kind: "lead", cell: (it) => it.kind },
    { title: "From controllers/s", kind: "number", cell: (it) => perSecond(it.from) },
    { title: "To controllers/s", kind: "number", cell: (it) => perSecond(it.to) },
    { title: "From, in all", kind: "number", cell: (it) => short(it.fromAll) },
    { title: "To, in all", kind: "number", cell: (it) => short(it.toAll) },
  ], { key: (it) => it.kind, caption: "Messages by kind", none: "No message yet." });
  const refusals = table([
    { title: "Reason", kind: "lead", cell: (it) => ({ key: it.reason, node: el("span", {}, el("code", {}, it.reason), " ", el("span.muted", {}, words(it.reason))) }) },
    { title: "Per second", kind: "number", cell: (it) => perSecond(it.rate) },
    { title: "In all", kind: "number", cell: (it) => short(it.count) },
  ], { key: (it) => it.reason, caption: "Refusals", none: "Nothing was refused." });
  const controllers = table([
    { title: "Controller", kind: "lead", cell: (it) => it.address },
    { title: "State", cell: (it) => ({ key: [it.connected, it.all], node: it.connected === it.all ? badge("ok", `connected for ${it.all} switches`.replace("for 1 switches", "for 1 switch")) : badge(it.connected > 0 ? "warn" : "bad", `connected for ${it.connected} of ${it.all}`) }) },
    { title: "Attempts", kind: "number", cell: (it) => short(it.dials) },
    { title: "Last fault", cell: (it) => it.fault },
  ], { key: (it) => it.address, caption: "Controllers", none: "No switch that it has a part of is connected." });
  const switches = table([
    { title: "Switch", kind: "lead", cell: (it) => ({ key: it.dpid, node: el("code", {}, it.dpid) }) },
    { title: "Its entries", kind: "number", cell: (it) => short(it.flows) },
    { title: "Has", kind: "number", cell: (it) => short(it.entries) },
    { title: "Refused", kind: "number", cell: (it) => short(it.refused) },
    { title: "Waiting south", kind: "number", cell: (it) => short(it.queue_south) },
    { title: "Waiting north", kind: "number", cell: (it) => short(it.queue_north) },
  ], { key: (it) => it.dpid, caption: "On switches", none: "No switch that it has a part of is connected." });
  const why = whyView(name);
  // By a data sheet, as a rule: without one nothing limits messages.
  const rateLimits = table([
    { title: "Switch", kind: "lead", cell: (it) => ({ key: it.switch, node: el("code", {}, it.switch) }) },
    { title: "Messages", cell: (it) => it.messages },
    { title: "Per second", kind: "number", cell: (it) => perSecond(it.per_second) },
    { title: "At once", kind: "number", cell: (it) => short(it.burst) },
    { title: "Why", cell: (it) => it.why },
  ], { key: (it) => `${it.switch} ${it.messages}`, caption: "Limits of messages", none: "Nothing limits its messages." });
  const ruleLimits = table([
    { title: "Switch", kind: "lead", cell: (it) => ({ key: it.switch, node: el("code", {}, it.switch) }) },
    { title: "Tables", cell: (it) => it.tables },
    { title: "Has", kind: "number", cell: (it) => short(it.rules) },
    { title: "May have", kind: "number", cell: (it) => short(it.may) },
    { title: "Why", cell: (it) => it.why },
  ], { key: (it) => `${it.switch} ${it.tables}`, caption: "Limits of rules, groups and meters", none: "No switch that it has a part of is connected." });
  const limitsView = el("details.more.limits", { ontoggle: () => readLimits() }, el("summary", {}, "Limits, and what they come from"), el("div.card", {}, ruleLimits), el("div.card", {}, rateLimits));
  const count = el("summary", {}, "On switches");
  const plots = el("div.plots");
  root.append(el("div.title", {}, title, sees() && onMap, mayChange(name) && edit), el("dl.tiles.wide", {}, figures), plots,
    el("div.columns", {}, section("Messages by kind", el("div.card", {}, kinds)), section("Refusals", el("div.card", {}, refusals))),
    why, traceView(name), section("Controllers", el("div.card", {}, controllers)), el("details.more", {}, count, el("div.card", {}, switches)), limitsView);

  let [drawn, rateChart, latencyChart, closed, isFree] = [null, null, null, false, false];
  function charts() {
    const history = state.history.get(name);
    if (!history || history.times.length < 2) return plots.childElementCount === 0 && plots.append(empty("Charts begin in a moment."));
    const sums = [...history.kinds].map(([kind, values]) => [kind, values.reduce((all, it) => all + it, 0)]);
    const most = sums.filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([kind]) => kind).sort();
    if (drawn !== most.join()) {
      drawn = most.join();
      rateChart?.close();
      latencyChart?.close();
      rateChart = chart(most.map((kind, at) => ({ name: kind, colour: () => hue(at) })), { label: "Messages per second, by kind", format: short });
      latencyChart = chart([{ name: "p50", colour: () => colour("accent") }, { name: "p99", colour: () => colour("warn") }], { label: "Added latency towards switches", format: time });
      plots.replaceChildren(rateChart, latencyChart);
    }
    rateChart.update(history.times, most.map((kind) => history.kinds.get(kind)));
    latencyChart.update(history.times, [history.p50, history.p99]);
  }

  function update() {
    const it = state.summary?.tenants[index()];
    if (!state.summary) return;
    if (!it) return put(title, `There is no tenant ${name}`);
    const rates = state.rates.tenants.get(name);
    title.style.setProperty("--dot", `hsl(${tenantHue(index())} 60% 50%)`);
    onMap.hidden = false;
    put(edit, hasNetwork(name) ? "Edit its network" : "Make it a network");
    edit.hidden = !hasNetwork(name) && !isFree;
    figures[0].set(perSecond(rates?.in));
    figures[1].set(perSecond(rates?.out));
    figures[2].set(perSecond(rates?.refused), rates?.refused > 0 ? "warn" : "");
    figures[3].set(time(it.added_south?.p50_us));
    figures[4].set(time(it.added_south?.p99_us));
    figures[5].set(short(it.entries));
    figures[6].set(it.fullest ? percent(it.fullest) : "–");
    const all = [...new Set([...Object.keys(it.from_controllers), ...Object.keys(it.to_controllers)])].sort();
    kinds.update(all.map((kind) => ({ kind, from: rates?.from[kind] ?? 0, to: rates?.to[kind] ?? 0, fromAll: it.from_controllers[kind] ?? 0, toAll: it.to_controllers[kind] ?? 0 })));
    const refused = Object.entries(it.refused).map(([reason, count]) => ({ reason, count, rate: rates?.refusedBy[reason] ?? 0 }));
    const dropped = Object.entries(it.dropped).map(([reason, count]) => ({ reason, count, rate: null }));
    refusals.update([...refused, ...dropped].sort((a, b) => b.count - a.count));
    charts();
  }

  async function read() {
    try {
      const [full] = await Promise.all([ask(`/api/v1/tenants/${part(name)}`), why.read()]);
      if (closed) return;
      // A slice is no network, and does not become one.
      isFree = full.flowspace.length === 0;
      put(count, `On ${full.switches.length} switches`);
      switches.update(full.switches);
      controllers.update(byAddress(full.switches));
    } catch {
      // It has gone; the summary says so.
    }
  }
  // There may be thousands, and they change seldom: read when they are looked at.
  async function readLimits() {
    if (!limitsView.open) return;
    try {
      const { limits, rates } = await ask(`/api/v1/limits?tenant=${part(name)}`);
      if (closed) return;
      ruleLimits.update(limits);
      rateLimits.update(rates);
    } catch {
      // It has gone; the summary says so.
    }
  }
  const timer = setInterval(() => document.hidden || read(), REFRESH);
  const unwatch = watch(update);
  update();
  if (index() >= 0) read();
  return {
    restyle() {
      drawn = null;
      update();
    },
    close() {
      closed = true;
      clearInterval(timer);
      unwatch();
      rateChart?.close();
      latencyChart?.close();
    },
  };
}

/** A tenant's controllers, over all switches. */
function byAddress(switches) {
  const all = new Map();
  for (const contact of switches.flatMap((it) => it.controllers)) {
    const { address, connected, dials, last_error: error, last_error_ms: at } = contact;
    const is = all.get(address) ?? { address, all: 0, connected: 0, dials: 0, fault: "", at: 0 };
    Object.assign(is, { all: is.all + 1, connected: is.connected + Number(connected), dials: is.dials + dials });
    if (error && at > is.at) Object.assign(is, { at, fault: `${clock(at)} ${error}` });
    all.set(address, is);
  }
  return [...all.values()];
}
