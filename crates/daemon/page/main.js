// Where the page begins: who asks, which view, in which colours.

import { el, put } from "./parts.js";
import { open, sees, start, state, stop, watch } from "./state.js";
import { Refusal, token } from "./server.js";
import { networkView } from "./network.js";
import { tenantsView, tenantView } from "./tenants.js";
import { switchesView } from "./switches.js";
import { logView } from "./log.js";
import { editorView } from "./editor.js";

const content = document.getElementById("content");
const nav = document.getElementById("nav");
const live = document.getElementById("live");
const leave = document.getElementById("leave");
const theme = document.getElementById("theme");

/** Paths behind the #, and what is shown there. */
const VIEWS = [
  [/^\/(?:network)?$/, "network", networkView],
  [/^\/network\/(?<tenant>.+)$/, "network", networkView],
  [/^\/tenants$/, "tenants", tenantsView],
  [/^\/tenants\/(?<tenant>.+)$/, "tenants", tenantView],
  [/^\/switches$/, "switches", switchesView],
  [/^\/edit\/(?<tenant>.+)$/, "network", editorView],
  [/^\/log$/, "log", logView],
];

let shown = null;

function links() {
  const own = encodeURIComponent(state.session.tenant ?? "");
  if (sees()) return [["network", "#/", "Network"], ["tenants", "#/tenants", "Tenants"], ["switches", "#/switches", "Switches"], ["log", "#/log", "Log"]];
  return [["network", "#/", "Network"], ["tenants", `#/tenants/${own}`, "Figures"], ["log", "#/log", "Log"]];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route() {
  if (!state.session) return;
  const path = location.hash.slice(1) || "/";
  const found = VIEWS.map(([pattern, name, view]) => [path.match(pattern), name, view]).find(([match]) => match);
  const [match, name, view] = found ?? [path.match(/^/), "network", networkView];
  const tenant = match.groups?.tenant && decoded(match.groups.tenant);
  shown?.close();
  content.replaceChildren();
  content.className = `view-${name}`;
  shown = view(content, { tenant });
  nav.replaceChildren(...links().map(([of, href, text]) => el("a", { href, "aria-current": of === name ? "page" : null }, text)));
  document.title = `${tenant ?? links().find(([of]) => of === name)?.[2] ?? "Network"} · Weir`;
  scrollTo(0, 0);
}

function status() {
  const { connection, summary, session } = state;
  const [kind, text] = !session ? ["none", ""]
    : connection === "lost" ? ["bad", "Weir does not answer"]
    : !summary ? ["none", "connecting"]
    : summary.store_full ? ["warn", "state cannot be stored"]
    : ["ok", "live"];
  live.className = `live ${kind}`;
  live.title = summary?.store_full ?? "";
  put(live, text);
}

let failures = 0;

async function begin() {
  try {
    await open();
    failures = 0;
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return ask(token.get() ? "This token is not known, or has expired." : "");
    failures += 1;
    const next = setTimeout(begin, Math.min(500 * 2 ** failures, 10_000));
    const now = () => (clearTimeout(next), begin());
    content.replaceChildren(el("div.card.center", {}, el("h1", {}, "Weir does not answer"), el("p", {}, error.message), el("button", { onclick: now }, "Try again")));
    return;
  }
  leave.hidden = false;
  put(leave, token.get() ? "Sign out" : "Sign in");
  leave.title = `You are ${state.session.role}${state.session.tenant ? ` of ${state.session.tenant}` : ""}`;
  if (state.session.role === "metrics") {
    content.replaceChildren(el("div.card.center", {}, el("h1", {}, "This token reads metrics alone"), el("p", {}, "Ask for /metrics with it.")));
    return;
  }
  start(() => (out(), ask("This token is not known any more, or has expired.")));
  route();
}

/** Asks for a token. */
function ask(why) {
  const input = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: false, required: true });
  const enter = (event) => {
    event.preventDefault();
    token.set(input.value.trim());
    content.replaceChildren();
    location.hash = "#/";
    begin();
  };
  content.className = "";
  content.replaceChildren(el("form.card.center", { onsubmit: enter }, el("h1", {}, "Sign in"), why && el("p.note", { role: "alert" }, why),
    el("label.field", { htmlFor: "token" }, el("span", {}, "Token"), input),
    el("p.muted", {}, "Your administrator makes one with ", el("code", {}, "weir ctl token create"), ". It stays in this tab, and is forgotten with it."),
    el("button.primary", { type: "submit" }, "Sign in")));
  input.focus();
}

function out() {
  shown?.close();
  shown = null;
  token.clear();
  stop();
  leave.hidden = true;
  nav.replaceChildren();
  status();
}

const THEMES = ["auto", "light", "dark"];
function paint() {
  const is = localStorage.getItem("weir-theme") ?? "auto";
  if (is === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = is;
  put(theme, { auto: "◐", light: "☀", dark: "☾" }[is] ?? "◐");
  theme.title = `Colours: ${is}`;
  theme.setAttribute("aria-label", `Colours: ${is}`);
  shown?.restyle?.();
}

theme.addEventListener("click", () => {
  const is = localStorage.getItem("weir-theme") ?? "auto";
  localStorage.setItem("weir-theme", THEMES[(THEMES.indexOf(is) + 1) % THEMES.length]);
  paint();
});
leave.addEventListener("click", () => (out(), ask("")));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
addEventListener("hashchange", route);
watch(status);
paint();
begin();
