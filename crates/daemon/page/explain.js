// Why requests of a tenant were refused, and where a packet goes.

import { clock, el, put, section, shortDpid, table } from "./parts.js";
import { ask, part } from "./server.js";

/** Who refused, for people. */
const BY = { weir: "Weir", switch: "the switch", silence: "nobody: no answer" };

/** The last refused requests of a tenant; `read` asks for them anew. */
export function whyView(name) {
  const rows = table([
    { title: "Request", kind: "lead", cell: (it) => ({ key: it.key, node: el("code", {}, it.request) }) },
    { title: "Why", cell: (it) => ({ key: it.key, node: el("span", {}, it.reason, " ", el("code.muted", {}, it.error)) }) },
    { title: "By", cell: (it) => BY[it.by] ?? it.by },
    { title: "Switch", cell: (it) => shortDpid(it.switch) },
    { title: "At", kind: "number", cell: (it) => clock(it.time_ms) },
  ], { key: (it) => it.key, caption: "Last refused requests", none: "Nothing was refused since Weir started." });
  const root = section("Last refused requests", el("div.card", {}, rows));
  root.read = async () => {
    const { refusals } = await ask(`/api/v1/tenants/${part(name)}/why`);
    // Two requests may be alike to the millisecond.
    rows.update(refusals.map((it, at) => ({ ...it, key: [it.time_ms, it.switch, it.xid, refusals.length - at].join() })));
  };
  return root;
}

/** A form that asks where a packet of this tenant goes or, without a tenant, where any packet goes, and who owns the packet. */
export function traceView(name) {
  const on = el("input", { id: "trace-switch", required: true, spellcheck: false, autocomplete: "off", placeholder: "1" });
  const flow = el("input", { id: "trace-flow", required: true, spellcheck: false, autocomplete: "off", placeholder: "in_port=1,ip,nw_dst=10.0.0.2" });
  const said = el("pre", { id: "trace-said", "aria-live": "polite", hidden: true });
  const submit = async (event) => {
    event.preventDefault();
    said.hidden = false;
    try {
      const trace = await ask(name === undefined
        ? `/api/v1/switches/${part(on.value.trim())}/trace/${part(flow.value.trim())}`
        : `/api/v1/tenants/${part(name)}/switches/${part(on.value.trim())}/trace/${part(flow.value.trim())}`);
      put(said, trace.text.join("\n"));
    } catch (error) {
      put(said, error.message);
    }
  };
  const title = name === undefined ? "Owner and path of a packet" : "Where a packet goes";
  return section(title, el("form.card", { onsubmit: submit },
    el("label.field", { htmlFor: "trace-switch" }, el("span", {}, "Switch"), on),
    el("label.field", { htmlFor: "trace-flow" }, el("span", {}, "Packet"), flow),
    el("p.muted", {}, "As a flow of ", el("code", {}, "ovs-appctl ofproto/trace"), ". No packet is sent."),
    el("button.primary", { type: "submit" }, "Trace"), said));
}
