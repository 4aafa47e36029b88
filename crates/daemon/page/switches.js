// The connected switches: window, queue, entries, messages.

import { el, perSecond, share, short, shortDpid, table } from "./parts.js";
import { sees, state, watch } from "./state.js";
import { traceView } from "./explain.js";

export function switchesView(root) {
  const rates = (it) => state.rates.switches.get(it.dpid);
  const number = (title, of) => ({ title, kind: "number", cell: (it) => short(of(it)) });
  const columns = [
    { title: "Switch", kind: "lead", cell: (it) => ({ key: [it.name, it.dpid], node: el("span", {}, el("b", {}, it.name ?? shortDpid(it.dpid)), " ", el("code", {}, it.dpid)) }) },
    { title: "OpenFlow", cell: (it) => it.openflow },
    number("Window", (it) => it.window),
    { title: "Unacknowledged", kind: "number gauge", cell: (it) => ({ key: [it.outstanding, it.window], node: el("span", {}, `${short(it.outstanding)} `, share(it.outstanding, it.window)) }) },
    number("Queue", (it) => it.queue),
    number("Entries", (it) => it.entries),
    { title: "Sends/s", kind: "number", cell: (it) => perSecond(rates(it)?.received) },
    { title: "Gets/s", kind: "number", cell: (it) => perSecond(rates(it)?.sent) },
  ];
  const all = table(columns, { key: (it) => it.dpid, caption: "Connected switches", none: "No switch is connected." });
  root.append(el("h1", {}, "Switches"), el("p.lead", {}, "Window: messages that may be unacknowledged at the switch. Queue: messages that wait in Weir."), el("div.card", {}, all), ...(sees() ? [traceView()] : []));
  const update = () => state.summary && all.update(state.summary.switches);
  const unwatch = watch(update);
  update();
  return { close: unwatch };
}
