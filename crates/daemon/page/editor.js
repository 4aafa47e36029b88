// A tenant's network, part by part: changes are put together, tried, and made as one transaction.

import { add as put, badge, el, empty, section, shortDpid, shortDpids, shortPort, table } from "./parts.js";
import { ask, part } from "./server.js";
import { mayChange, network, readTopology, state, version, watch } from "./state.js";

const FORMS = {
  switch: {
    title: "Add a switch", operation: "put-switch",
    fields: [["dpid", "Datapath id", "0xa1"], ["name", "Name", "", true], ["on", "Physical switches", "1, 2"]],
    make: ({ dpid, name, on }) => ({ dpid, name, on: items(on) }),
  },
  port: {
    title: "Add a port", operation: "put-port",
    fields: [["switch", "Switch", "0xa1"], ["number", "Number", "1"], ["at", "Physical port", "1 port 1"], ["shared", "Shared with other tenants", "checkbox"]],
    make: ({ switch: dpid, number, at, shared }) => ({ switch: dpid, number: /^\d+$/.test(number) ? Number(number) : number, at, shared }),
  },
  link: {
    title: "Add a link", operation: "put-link",
    fields: [["a", "From port", "0xa1 port 2"], ["b", "To port", "0xa2 port 2"], ["bandwidth", "Bandwidth", "5Mbit", true],
      ["backup", "Backup", [["", "none"], ["links", "by other links"], ["switches", "by other switches"]]]],
    make: ({ a, b, bandwidth, backup }) => ({ between: [a, b], ...(bandwidth && { bandwidth }), ...(backup && { backup }) }),
  },
  host: {
    title: "Add a host", operation: "put-host",
    fields: [["mac", "Hardware address", "02:00:00:00:00:01"], ["address", "Addresses", "10.0.0.1", true], ["at", "Port", "0xa1 port 1"]],
    make: ({ mac, address, at }) => ({ mac, address: items(address), at }),
  },
};

const items = (text) => text.split(",").map((item) => item.trim()).filter(Boolean);

export function editorView(root, { tenant }) {
  let [seen, pending, tried, closed, read, isNew] = [null, [], null, false, -1, false];
  const physical = el("datalist", { id: "physical-ports" });
  const own = el("datalist", { id: "own-ports" });
  const switches = el("datalist", { id: "own-switches" });

  const act = (verb, target, words) => ({ [verb]: target, words: `${words}` });
  const actions = (kind, target, it, words) => {
    const button = (text, verb) => el("button.small", { type: "button", "aria-label": `${text} ${words}`, onclick: () => add(act(verb, { [kind]: target }, `${text} ${words}`)) }, text);
    return { key: [target, it.started], node: el("span.actions", {}, kind !== "host" && (it.started ? button("Stop", "stop") : button("Start", "start")), button("Remove", "remove")) };
  };
  const stateOf = (it, up) => {
    const [kind, text] = !it.started ? ["warn", "stopped"] : up === false ? ["bad", "down"] : up === undefined ? ["none", "started"] : ["ok", "up"];
    return { key: [kind, text], node: badge(kind, text) };
  };
  const up = (port) => seen?.ports.find((it) => it.port === port)?.up;
  const end = (it) => `${it.switch} port ${it.number}`;
  const lead = (title, cell) => ({ title, kind: "lead", cell });
  const tables = {
    switches: table([
      lead("Switch", (it) => ({ key: [it.dpid, it.name], node: el("span", {}, el("code", {}, it.dpid), it.name ? ` ${it.name}` : "") })),
      { title: "On", cell: (it) => it.on.map(shortDpid).join(", ") },
      { title: "State", cell: (it) => stateOf(it) },
      { title: "", kind: "end", cell: (it) => actions("switch", it.dpid, it, `switch ${shortDpid(it.dpid)}`) },
    ], { key: (it) => it.dpid, caption: "Switches", none: "No switch." }),
    ports: table([
      lead("Port", (it) => shortPort(end(it))),
      { title: "At", cell: (it) => shortPort(it.at) + (it.shared ? ", shared" : "") },
      { title: "State", cell: (it) => stateOf(it, up(end(it))) },
      { title: "", kind: "end", cell: (it) => actions("port", end(it), it, `port ${shortPort(end(it))}`) },
    ], { key: end, caption: "Ports", none: "No port." }),
    links: table([
      lead("Link", (it) => it.between.map(shortPort).join(" – ")),
      { title: "Bandwidth", kind: "number", cell: (it) => it.bandwidth ?? "–" },
      { title: "Backup", cell: (it) => (it.backup ? `by other ${it.backup}` : "–") },
      { title: "State", cell: (it) => stateOf(it, up(it.between[0])) },
      { title: "", kind: "end", cell: (it) => actions("link", it.between, it, `link ${it.between.map(shortPort).join(" – ")}`) },
    ], { key: (it) => it.between.join(), caption: "Links", none: "No link." }),
    hosts: table([
      lead("Host", (it) => ({ key: it.mac, node: el("code", {}, it.mac) })),
      { title: "Address", cell: (it) => it.address?.join(", ") || seen.assigned.find((given) => given.mac === it.mac)?.address || "–" },
      { title: "At", cell: (it) => shortPort(it.at) },
      { title: "", kind: "end", cell: (it) => actions("host", it.mac, it, `host ${it.mac}`) },
    ], { key: (it) => it.mac, caption: "Hosts", none: "No host." }),
  };

  const list = el("ol.pending");
  const outcome = el("div", { role: "status" });
  const dry = el("button", { type: "button", id: "dry-run", onclick: () => send(true) }, "Dry run");
  const commit = el("button.primary", { type: "button", id: "commit", onclick: () => send(false) }, "Commit");
  const clear = el("button.quiet", { type: "button", onclick: () => ((pending = []), changed()) }, "Discard");
  const may = mayChange(tenant);
  const note = !may && el("p.note", {}, "You may look at this network, and not change it.");
  put(root, el("div.title", {}, el("h1", {}, `Network of ${tenant}`), el("a.button", { href: `#/network/${part(tenant)}` }, "Show on the map")), note, physical, own, switches,
    el("div.split", {},
      el("div", {}, ["switches", "ports", "links", "hosts"].map((name) => section(name[0].toUpperCase() + name.slice(1), el("div.card", {}, tables[name]), may && form(name)))),
      may && el("aside.changes", {}, section("Changes", el("div.card", {}, list, el("div.buttons", {}, dry, commit, clear), outcome)))));

  function form(name) {
    const { title, operation, fields, make } = FORMS[name.replace(/(e?)s$/, (_, e) => (name === "switches" ? "" : e))];
    const inputs = {};
    const rows = fields.map(([key, label, hint, optional]) => {
      const id = `${operation}-${key}`;
      if (Array.isArray(hint)) inputs[key] = el("select", { id }, hint.map(([value, text]) => el("option", { value }, text)));
      else if (hint === "checkbox") inputs[key] = el("input", { id, type: "checkbox" });
      else inputs[key] = el("input", { id, placeholder: hint, required: !optional, autocomplete: "off", spellcheck: false, list: suggestions(operation, key) });
      return el(`label.field${hint === "checkbox" ? ".check" : ""}`, { htmlFor: id }, el("span", {}, label), inputs[key]);
    });
    const enter = (event) => {
      event.preventDefault();
      const values = Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, input.type === "checkbox" ? input.checked : input.value.trim()]));
      const made = make(values);
      add({ [operation]: made, words: `${title.replace("a ", "")} ${Object.values(made).flat().filter((it) => it && it !== true).join(", ")}` });
      event.target.reset();
    };
    return el("details.add", {}, el("summary", {}, title), el("form", { onsubmit: enter }, rows, el("button", { type: "submit" }, "Add to the changes")));
  }

  function suggestions(operation, key) {
    if (operation === "put-port" && key === "at") return "physical-ports";
    if (operation === "put-port" && key === "switch") return "own-switches";
    return operation === "put-host" && key === "at" ? "own-ports" : null;
  }

  function add(operation) {
    pending.push(operation);
    changed();
  }

  function changed() {
    tried = null;
    outcome.replaceChildren();
    show();
  }

  function show() {
    const remove = (at) => () => (pending.splice(at, 1), changed());
    list.replaceChildren(...pending.map((it, at) => el("li", {}, el("span", {}, it.words), el("button.small", { type: "button", "aria-label": `Leave out: ${it.words}`, onclick: remove(at) }, "×"))));
    if (pending.length === 0) list.append(el("li.none", {}, "Add, start, stop or remove parts; nothing is changed before you commit."));
    dry.disabled = clear.disabled = pending.length === 0;
    commit.disabled = !tried;
    commit.title = tried ? "" : "Try it first";
  }

  async function send(isDry) {
    [dry.disabled, commit.disabled] = [true, true];
    const operations = pending.map(({ words, ...operation }) => operation);
    try {
      const done = await ask(`/api/v1/networks/${part(tenant)}/changes?dry_run=${isDry}`, "POST", operations);
      if (isDry) tried = operations;
      else [pending, tried, read] = [[], null, -1];
      show();
      outcome.replaceChildren(el("h3", {}, isDry ? "This would change" : "Done. This has changed"), changesOf(done));
      if (!isDry) await refresh();
    } catch (refused) {
      show();
      outcome.replaceChildren(el("h3.bad", {}, refused.message), el("ul.reasons", {}, (refused.reasons ?? []).map((reason) => el("li", {}, reason))));
    }
  }

  function changesOf({ parts, ports, paths }) {
    const word = (up) => (up === undefined ? null : up ? "up" : "down");
    const change = (name, was, is) => el("li", {}, el("b", {}, was ? (is ? "~ " : "− ") : "+ "), shortDpids(name), was ? el("del", {}, shortDpids(was)) : null, is ? el("ins", {}, shortDpids(is)) : null);
    const all = [
      ...parts.map((it) => change(`${it.part} `, it.was, it.is)),
      ...ports.map((it) => change(`port ${it.port} `, word(it.was), word(it.is))),
      ...paths.map((it) => change(`path of ${it.carries} ${it.between.join(" – ")} `, it.was.join(", "), it.is.join(", "))),
    ];
    return all.length > 0 ? el("ul.outcome", {}, all) : empty("Nothing.");
  }

  async function refresh() {
    const number = state.summary && version(state.summary);
    if (closed || !state.summary || number === read) return;
    if (may && !state.topology) await readTopology();
    read = number;
    try {
      const exists = state.summary.tenants.find((it) => it.name === tenant)?.has_network || isNew;
      seen = exists ? await network(tenant) : null;
    } catch {
      read = -1;
      return;
    }
    if (closed) return;
    const { switches: all, ports, links, hosts } = seen?.network ?? { switches: [], ports: [], links: [], hosts: [] };
    tables.switches.update(all);
    tables.ports.update(ports);
    tables.links.update(links);
    tables.hosts.update(hosts);
    const options = (list, values) => list.replaceChildren(...values.map((value) => el("option", { value })));
    options(own, ports.map(end));
    options(switches, all.map((it) => it.dpid));
    options(physical, (state.topology?.switches ?? []).flatMap((it) => it.ports.map((port) => `${it.dpid} port ${port.port}`)));
  }

  const unwatch = watch(refresh);
  show();
  refresh();
  return {
    close() {
      closed = true;
      unwatch();
    },
  };
}
