// What is known of Weir: the newest summary, rates from two of them, their history, the topology, the log.

import { ask, listen, part, Refusal } from "./server.js";

/** Points of the history: one a second. */
const POINTS = 300;
const LOG_LINES = 500;

export const state = {
  /** Who asks: `{role, tenant, may_change}`. */
  session: null,
  connection: "connecting",
  summary: null,
  /** By tenant and by switch, events per second. */
  rates: { tenants: new Map(), switches: new Map() },
  /** By tenant: `{times, in, out, refused, south, north, kinds}`, as long as each other. */
  history: new Map(),
  topology: null,
  log: [],
};

const watchers = new Set();

/** Calls back after each change until what is returned is called. */
export function watch(changed) {
  watchers.add(changed);
  return () => watchers.delete(changed);
}

let isNotifying = false;
function notify() {
  if (isNotifying) return;
  isNotifying = true;
  // Once for what comes together; a page that nobody sees costs nothing.
  requestAnimationFrame(() => {
    isNotifying = false;
    watchers.forEach((changed) => changed());
  });
}

export const sees = () => state.session && state.session.role !== "tenant";
export const mayChange = (tenant) => state.session?.may_change && (sees() || state.session.tenant === tenant);

/** Asks who asks. */
export async function open() {
  state.session = await ask("/api/v1/session");
}

let abort = null;

export function start(onRefused) {
  abort = new AbortController();
  const { signal } = abort;
  listen("/api/v1/events", {
    signal,
    onEvent: (name, data) => {
      if (name === "summary") takeSummary(data);
      if (name === "log") takeLog(data.lines);
      notify();
    },
    onState: (is) => {
      if (is === "refused") return onRefused();
      state.connection = is;
      notify();
    },
  });
}

export function stop() {
  abort?.abort();
  Object.assign(state, { session: null, summary: null, topology: null, log: [], connection: "connecting" });
  state.history.clear();
}

function takeLog(lines) {
  state.log = state.log.concat(lines).slice(-LOG_LINES);
}

const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

function takeSummary(now) {
  const before = state.summary;
  const isAnother = before && before.started_ms !== now.started_ms;
  if (isAnother) {
    state.history.clear();
    state.log = [];
    state.topology = null;
  }
  state.summary = now;
  const elapsed = before && !isAnother ? (now.time_ms - before.time_ms) / 1000 : 0;
  if (elapsed > 0) rate(before, now, elapsed);
  if (sees() && state.topology?.number !== now.topology) readTopology();
}

function rate(before, now, elapsed) {
  // What has become smaller began anew.
  const per = (is, was) => Math.max(0, is - (was <= is ? was : 0)) / elapsed;
  const each = (is, was) => Object.fromEntries(Object.entries(is).map(([key, count]) => [key, per(count, was[key] ?? 0)]));
  const tenants = new Map(before.tenants.map((tenant) => [tenant.name, tenant]));
  const switches = new Map(before.switches.map((it) => [it.dpid, it]));
  state.rates.tenants = new Map();
  state.rates.switches = new Map();
  for (const tenant of now.tenants) {
    const was = tenants.get(tenant.name);
    if (!was) continue;
    const [from, to] = [each(tenant.from_controllers, was.from_controllers), each(tenant.to_controllers, was.to_controllers)];
    const refused = each(tenant.refused, was.refused);
    const rates = { from, to, in: total(from), out: total(to), refusedBy: refused, refused: total(refused) };
    state.rates.tenants.set(tenant.name, rates);
    remember(tenant, rates, now.time_ms / 1000);
  }
  for (const it of now.switches) {
    const was = switches.get(it.dpid);
    if (was) state.rates.switches.set(it.dpid, { received: per(it.received, was.received), sent: per(it.sent, was.sent) });
  }
}

function remember(tenant, rates, at) {
  let history = state.history.get(tenant.name);
  if (!history) state.history.set(tenant.name, (history = { times: [], kinds: new Map(), p50: [], p99: [], in: [], out: [] }));
  const length = history.times.length;
  history.times.push(at);
  history.in.push(rates.in);
  history.out.push(rates.out);
  history.p50.push(tenant.added_south?.p50_us ?? null);
  history.p99.push(tenant.added_south?.p99_us ?? null);
  const kinds = { ...rates.to };
  for (const [kind, count] of Object.entries(rates.from)) kinds[kind] = (kinds[kind] ?? 0) + count;
  for (const kind of Object.keys(kinds)) if (!history.kinds.has(kind)) history.kinds.set(kind, Array(length).fill(0));
  for (const [kind, values] of history.kinds) values.push(kinds[kind] ?? 0);
  if (history.times.length > POINTS) {
    for (const values of [history.times, history.in, history.out, history.p50, history.p99, ...history.kinds.values()]) values.shift();
  }
}

let isReading = false;
/** Asks for the physical network: with each change of it, or, for a tenant, when it is needed. */
export async function readTopology() {
  if (isReading) return;
  isReading = true;
  try {
    state.topology = await ask("/api/v1/topology");
    notify();
  } catch {
    // It is asked for again with the next summary.
  } finally {
    isReading = false;
  }
}

/** Whether a tenant has a network of its own. */
export const hasNetwork = (name) => state.summary?.tenants.find((tenant) => tenant.name === name)?.has_network ?? false;

/** When this is another, networks may be others. A tenant gets no notice of changes, since others make some, and the page asks every few seconds. */
export const version = (summary) => (sees() ? summary.networks : Math.floor(summary.time_ms / 4000));

/** A tenant's network; `null` where there is none. */
export async function network(tenant) {
  try {
    return await ask(`/api/v1/networks/${part(tenant)}`);
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return null;
    throw error;
  }
}

/** The last labels that Weir sent to a tenant, by `dpid port`; empty for a tenant without labels. */
export async function labels(tenant) {
  try {
    const { labels } = await ask(`/api/v1/tenants/${part(tenant)}/labels`);
    return new Map(labels.map((label) => [`${label.dpid} ${label.port}`, label]));
  } catch {
    return new Map();
  }
}
