// The first view: the physical network with load, a tenant's network over it or as that tenant sees it, and what is chosen.

import { busy, hue, loaded, map, width } from "./map.js";
import { badge, bits, el, empty, perSecond, put, section, short, shortDpid, shortPort, tile } from "./parts.js";
import { labels, hasNetwork, mayChange, network, sees, state, version, watch } from "./state.js";
import { lines } from "./log.js";

const dpid = (port) => port.split(" ")[0];
const portOf = ({ dpid, port }) => `${dpid} port ${port}`;
const linkId = (link) => link.between.map(portOf).sort().join(" – ");

export function networkView(root, { tenant: asked }) {
  let [tenant, seen, linkLabels, asOwn] = [asked ?? (sees() ? "" : state.session.tenant), null, new Map(), !sees()];
  let [read, chosen, closed] = [-1, null, false];

  const who = el("select", { id: "who", onchange: () => choose(who.value) });
  const view = el("select", { id: "view", onchange: () => ((asOwn = view.value === "own"), draw()) },
    sees() && el("option", { value: "physical" }, "on the physical network"), el("option", { value: "own" }, "as its controllers see it"));
  const edit = el("a.button", { hidden: true }, "Edit this network");
  const place = el("div.canvas");
  let chart = null;
  const button = (text, name, act) => el("button", { type: "button", title: name, "aria-label": name, onclick: act }, text);
  const zoom = el("div.zoom", {}, button("+", "Zoom in", () => chart.zoom(1.25)), button("−", "Zoom out", () => chart.zoom(0.8)), button("⤢", "Show all", () => chart.fit()));
  // What is drawn, for those who do not see or use the picture.
  const list = el("select", { id: "find", "aria-label": "Find a switch or link", onchange: () => list.value && chart.choose(list.value) });
  const caption = el("p.caption");
  const inspector = el("div");
  const figures = [tile("Switches"), tile("Links up"), tile("Tenants"), tile("Controllers"), tile("Messages/s"), tile("Refused/s")];
  const news = el("div");
  root.append(el("div.split", {},
    el("div.card.map", {},
      el("div.controls", {}, sees() && el("label", {}, "Tenant ", who), el("label.view", {}, el("span.hidden", {}, "Shown "), view), list, edit),
      el("div.stage", {}, place, zoom), caption),
    el("aside", {}, el("dl.tiles", {}, sees() ? figures : figures.slice(3)), inspector, section("Latest", news))));
  // It has to have a place on the page before it can be drawn.
  chart = map(place, (data) => ((chosen = data), detail()));

  function choose(name) {
    [tenant, seen, linkLabels, read] = [name, null, new Map(), -1];
    if (!name) asOwn = false;
    refresh();
  }

  /** Reads the tenant's network where it has become another, and its labels. */
  async function refresh() {
    const now = state.summary;
    const own = now?.tenants.find((it) => it.name === tenant);
    if (own && read !== version(now)) {
      read = version(now);
      const asked = tenant;
      try {
        const found = hasNetwork(tenant) ? await network(tenant) : null;
        const left = own.has_labels ? await labels(tenant) : new Map();
        if (closed || asked !== tenant) return;
        [seen, linkLabels] = [found, left];
      } catch {
        read = -1;
      }
    }
    draw();
  }

  function draw() {
    if (closed || !state.summary) return;
    const names = state.summary.tenants.map((it) => it.name);
    fill(who, [["", "none"], ...names.map((name) => [name, name])], tenant);
    view.value = asOwn ? "own" : "physical";
    view.parentElement.hidden = !tenant || !seen || !sees();
    edit.hidden = !tenant || !mayChange(tenant);
    edit.href = `#/edit/${encodeURIComponent(tenant)}`;
    const drawing = asOwn && seen ? virtual(seen) : sees() ? physical() : { nodes: [], links: [] };
    chart.draw(drawing);
    const said = [...drawing.nodes, ...drawing.links].map((it) => [it.id, it.named ?? it.id]);
    fill(list, [["", "Find…"], ...said], chosen?.id ?? "");
    put(caption, captionOf());
    detail();
  }

  function captionOf() {
    if (!tenant) return sees() ? "Links show their load, by the port counters of the switches. Choose one for more." : "";
    if (!seen && !state.summary.tenants.some((it) => it.name === tenant)) return `There is no tenant ${tenant}.`;
    if (!seen) return hasNetwork(tenant) ? "" : `${tenant} has no network of its own.`;
    return asOwn ? `The network that ${tenant}’s controllers see.` : `Where ${tenant}’s network lies: thick its paths, dashed those that stand by.`;
  }

  function physical() {
    const { topology, summary } = state;
    if (!topology) return { nodes: [], links: [] };
    const here = new Map(summary.switches.map((it) => [it.dpid, it]));
    const colour = hue(summary.tenants.findIndex((it) => it.name === tenant));
    const [on, paths] = [new Map(), new Map()];
    for (const virtual of seen?.network.switches ?? []) {
      for (const member of virtual.on) on.set(member, [...(on.get(member) ?? []), virtual.name || shortDpid(virtual.dpid)]);
    }
    for (const path of seen?.paths ?? []) {
      path.path.forEach((passed) => paths.set([passed.from, passed.to].sort().join(" – "), "used"));
      (path.backup ?? []).forEach((passed) => {
        const id = [passed.from, passed.to].sort().join(" – ");
        if (!paths.has(id)) paths.set(id, "backup");
      });
    }
    const wired = new Set(topology.links.flatMap((link) => link.between.map(portOf)));
    const nodes = topology.switches.map((it) => {
      const name = here.get(it.dpid)?.name ?? shortDpid(it.dpid);
      const own = on.get(it.dpid);
      const free = it.ports.filter((port) => !wired.has(`${it.dpid} port ${port.port}`)).length;
      const classes = [here.has(it.dpid) ? "" : "away", own ? "used" : tenant && seen ? "dim" : ""].join(" ");
      return { id: it.dpid, kind: "switch", label: own ? `${name}\n${own.join(", ")}` : name, named: `switch ${name}`, colour, classes, free };
    });
    const known = new Set(nodes.map((node) => node.id));
    // Switches of which only links are known.
    for (const { dpid: id } of topology.links.flatMap((link) => link.between)) {
      if (!known.has(id)) nodes.push({ id, kind: "switch", label: shortDpid(id), named: `switch ${shortDpid(id)}`, colour, classes: "away", free: 0 });
      known.add(id);
    }
    const links = topology.links.map((link, at) => {
      const [from, to] = link.between.map((end) => end.dpid);
      const now = summary.topology === topology.number ? summary.links[at] : null;
      const [id, up] = [linkId(link), now?.up ?? link.up];
      const left = link.between.map((end) => linkLabels.get(`${end.dpid} ${end.port}`)?.label_bits_per_second);
      const used = paths.get(id);
      const label = !up ? "down" : left[0] !== undefined ? `${bits(Math.min(...left.filter((it) => it !== undefined)))} left` : loaded(now?.load, link.bandwidth_bits_per_second);
      const classes = [up ? "" : "down", up ? busy(now?.load, link.bandwidth_bits_per_second) : "", used ?? (tenant && seen ? "dim" : "")].join(" ");
      const named = `link ${link.between.map((end) => shortPort(portOf(end))).join(" – ")}`;
      return { id, from, to, kind: "link", label, named, colour, classes, width: width(link.bandwidth_bits_per_second), at };
    });
    const free = new Map(nodes.map((node) => [node.id, node.free]));
    const [some, none] = [nodes.some((node) => node.free > 0), nodes.some((node) => node.free === 0)];
    return { nodes, links, rank: some && none ? (node) => (free.get(node.id) > 0 ? 0 : 1) : undefined };
  }

  function virtual({ network: own, ports, assigned }) {
    const up = new Map(ports.map((port) => [port.port, port.up]));
    const colour = hue(state.summary.tenants.findIndex((it) => it.name === tenant));
    const addresses = new Map(assigned.map((it) => [it.mac, it.address]));
    const nodes = own.switches.map((it) => ({ id: it.dpid, kind: "own-switch", label: it.name || shortDpid(it.dpid), named: `switch ${it.name || shortDpid(it.dpid)}`,
      colour, classes: it.started ? "used" : "used dim" }));
    const known = new Set(nodes.map((node) => node.id));
    const links = own.links.filter((link) => link.between.every((end) => known.has(dpid(end)))).map((link) => {
      const ends = link.between;
      const is = ends.every((end) => up.get(end) !== false) && link.started;
      const trouble = is ? (link.bandwidth ?? "") : link.started ? "down" : "stopped";
      return { id: [...ends].sort().join(" – "), from: dpid(ends[0]), to: dpid(ends[1]), kind: "own-link", label: trouble, named: `link ${ends.map(shortPort).join(" – ")}`,
        colour, classes: is ? "used" : "down" };
    });
    for (const host of own.hosts.filter((host) => known.has(dpid(host.at)))) {
      const address = host.address?.[0] ?? addresses.get(host.mac) ?? host.mac;
      nodes.push({ id: `host ${host.mac}`, kind: "host", label: address, named: `host ${address}`, classes: "host", colour });
      links.push({ id: `at ${host.mac}`, from: `host ${host.mac}`, to: dpid(host.at), kind: "host-link", label: "", named: `${address} at ${shortPort(host.at)}`, classes: "host", width: 1, colour });
    }
    const hosts = own.hosts.length > 0;
    return { nodes, links, rank: hosts ? (node) => (node.kind === "host" ? 0 : 1) : undefined };
  }

  /** What is chosen, in words. */
  function detail() {
    const about = chosen && described(chosen);
    if (!about) return inspector.replaceChildren();
    const [title, rows, ...more] = about;
    inspector.replaceChildren(el("section.chosen", {}, el("h2", {}, title),
      el("dl.facts", {}, rows.filter(Boolean).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])), ...more));
  }

  function described({ id, kind, at }) {
    const { summary, topology } = state;
    if (kind === "switch") {
      const it = summary.switches.find((it) => it.dpid === id);
      const rates = state.rates.switches.get(id);
      const ports = topology?.switches.find((it) => it.dpid === id)?.ports ?? [];
      return [`Switch ${it?.name ?? shortDpid(id)}`, [
        ["Datapath id", el("code", {}, id)],
        ["State", it ? badge("ok", `connected, OpenFlow ${it.openflow}`) : badge("bad", "not connected")],
        it && ["Window", `${short(it.window)} messages, ${short(it.outstanding)} unacknowledged`],
        it && ["Queue", `${short(it.queue)} messages`],
        it && ["Entries", `${short(it.entries)} for ${short(it.flows)} of tenants`],
        it && ["Messages/s", `${perSecond(rates?.received)} from it, ${perSecond(rates?.sent)} to it`],
        ["Ports", `${ports.filter((port) => port.up).length} of ${ports.length} up`],
      ]];
    }
    if (kind === "link") {
      const link = topology?.links[at];
      if (!link || linkId(link) !== id) return null;
      const now = summary.topology === topology.number ? summary.links[at] : null;
      const up = now?.up ?? link.up;
      const [a, b] = link.between.map(portOf).map(shortPort);
      const left = (end) => linkLabels.get(`${end.dpid} ${end.port}`)?.label_bits_per_second;
      const ways = [[a, b, link.between[0], 0], [b, a, link.between[1], 1]];
      return ["Link", [
        ["Between", `${a} and ${b}`],
        ["State", up ? badge("ok", "up") : badge("bad", "down")],
        ["Known", link.known],
        ["Can carry", bits(link.bandwidth_bits_per_second)],
        ...ways.map(([from, to, , way]) => now?.load && [`${from} → ${to}`, bits(now.load[way])]),
        ...ways.map(([from, to, end]) => left(end) !== undefined && [`Left to ${tenant}, ${from} → ${to}`, bits(left(end))]),
      ]];
    }
    if (kind === "own-switch") {
      const it = seen?.network.switches.find((it) => it.dpid === id);
      return it && [`Switch ${it.name || shortDpid(id)} of ${tenant}`, [
        ["Datapath id", el("code", {}, id)],
        ["State", it.started ? badge("ok", "started") : badge("warn", "stopped")],
        sees() && ["Lies on", it.on.map(shortDpid).join(", ")],
      ]];
    }
    if (kind === "own-link") {
      const path = seen?.paths.find((path) => path.carries === "link" && [...path.between].sort().join(" – ") === id);
      const steps = (all) => all.map((passed) => `${shortPort(passed.from)} → ${shortPort(passed.to)}`).join(", ");
      return path && [`Link of ${tenant}`, [
        ["Between", path.between.map(shortPort).join(" and ")],
        ["State", path.trouble ? badge("bad", path.trouble) : badge("ok", "has a path")],
        sees() && path.path.length > 0 && ["Path", steps(path.path)],
        sees() && path.backup?.length > 0 && ["Stands by", steps(path.backup)],
      ]];
    }
    return null;
  }

  function update() {
    const { summary } = state;
    if (!summary) return;
    const rates = [...state.rates.tenants.values()];
    const sum = (each) => (rates.length > 0 ? perSecond(rates.reduce((all, it) => all + each(it), 0)) : "–");
    const up = summary.links.filter((link) => link.up).length;
    figures[0].set(String(summary.switches.length));
    figures[1].set(`${up} of ${summary.links.length}`, up < summary.links.length ? "bad" : "");
    figures[2].set(String(summary.tenants.length));
    const [connected, all] = ["connected", "controllers"].map((key) => summary.tenants.reduce((sum, it) => sum + it[key], 0));
    figures[3].set(`${connected} of ${all}`, connected < all ? "warn" : "");
    figures[4].set(sum((it) => it.in + it.out));
    figures[5].set(sum((it) => it.refused), rates.some((it) => it.refused > 0) ? "warn" : "");
    news.replaceChildren(state.log.length > 0 ? lines(state.log.slice(-8).reverse()) : empty("Nothing has happened yet."));
    refresh();
  }

  const unwatch = watch(update);
  update();
  return {
    restyle: () => (chart.restyle(), draw()),
    close() {
      closed = true;
      unwatch();
      chart.close();
    },
  };
}

/** Makes a list of choices what it is to be, without closing one that is open. */
function fill(select, options, value) {
  const said = JSON.stringify(options);
  if (select.said !== said) {
    select.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
    select.said = said;
  }
  if (select.value !== value && document.activeElement !== select) select.value = value;
}
