// The frame of the page: session, stream, list of views, and the current view.

import { login } from "./api.js";
import { approvals, pendingCount, receiveQuestions } from "./approvals.js";
import { audit } from "./audit.js";
import { denials } from "./denials.js";
import { draw, h } from "./dom.js";
import { follow } from "./events.js";
import { host } from "./host.js";
import { moveInViews, showHelp, startShortcuts } from "./keyboard.js";
import { loginView } from "./login.js";
import { announce } from "./messages.js";
import { overview } from "./overview.js";
import { results } from "./results.js";
import { runs } from "./runs.js";
import { savings } from "./savings.js";
import { servers } from "./servers.js";
import { may, preference, redraw, setDrawView, state } from "./state.js";

const VIEWS = [overview, runs, approvals, denials, servers, results, audit, savings, host];
const THEMES = { system: "light", light: "dark", dark: "system" };

/** The views of this person. Until it is known who they are, all views are listed. */
function views() {
  return VIEWS.filter((view) => !view.rights || state.hello === null || view.rights.some(may));
}

let current = overview;
let argument = null;

function readAddress() {
  const [, name, rest] = /^#\/(\w+)(?:\/(.*))?$/.exec(location.hash) ?? [];
  const view = views().find((one) => one.name === name) ?? overview;
  try {
    return { view, argument: rest ? decodeURIComponent(rest) : null };
  } catch {
    return { view, argument: null };
  }
}

function show() {
  // A new link, opened in the tab of an ended session.
  if (location.hash.startsWith("#token=")) return location.reload();
  const address = readAddress();
  const isSame = address.view === current && address.argument === argument;
  if (!isSame) current.leave?.();
  ({ view: current, argument } = address);
  if (!isSame) current.enter?.();
  drawAll();
  if (isSame) return;
  window.scrollTo(0, 0);
  document.querySelector('#views [aria-current="page"]').scrollIntoView({ block: "nearest", inline: "center" });
  document.getElementById("title")?.focus({ preventScroll: true });
}

const TITLES = { no_session: "Session ended", lost: "Disconnected" };

function drawAll() {
  const pending = pendingCount();
  document.title = `${pending ? `(${pending}) ` : ""}${TITLES[state.link] ?? current.title} – Lockhouse`;
  drawViews(pending);
  const main = document.getElementById("main");
  if (state.link === "no_session") return draw(main, loginView());
  if (!state.hello) return draw(main, h("p", { class: "muted", key: "loading" }, "Loading…"));
  draw(main, h("div", { class: "view", key: `${current.name} ${argument ?? ""}` }, current.render(argument)));
}

function drawViews(pending) {
  const counts = {
    approvals: pending,
    runs: state.runs?.active.length,
    denials: state.denials?.denials.length,
    servers: state.servers?.servers.filter((server) => server.states.some((one) => one.changed_tools > 0)).length,
  };
  const badge = (view) => {
    const count = counts[view.name];
    const isUrgent = view === approvals || view === servers;
    return count ? h("span", { class: isUrgent ? "badge calls-for-action" : "badge" }, String(count)) : null;
  };
  const item = (view) => {
    const isCurrent = view === current;
    const attributes = { href: `#/${view.name}`, "aria-current": isCurrent ? "page" : null, tabindex: isCurrent ? "0" : "-1" };
    return h("li", { key: view.name }, h("a", attributes, h("span", null, view.title), badge(view)));
  };
  draw(document.getElementById("views"), views().map(item));
}

function showLink(link, seconds) {
  const wasLost = state.link === "lost";
  state.link = link;
  const element = document.getElementById("link");
  element.dataset.state = link;
  element.textContent = link === "live" ? "Live" : link === "lost" ? "Disconnected, retrying" : "No session";
  element.title = link === "lost" ? `The next attempt follows in ${seconds} s` : "";
  if (link === "lost" && !wasLost) announce("Disconnected from Lockhouse. What the page shows may be old. Retrying.");
  if (link === "live" && wasLost) announce("Connected again.");
  redraw();
}

function receive(name, data) {
  if (!(name in state) || name === "link") return;
  state[name] = data;
  if (name === "approvals") receiveQuestions(data);
  if (name === "hello") document.getElementById("place").textContent = data.address;
  redraw();
}

function startTheme() {
  const button = document.getElementById("theme");
  const apply = () => {
    const theme = preference("theme") ?? "system";
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = { system: "Auto", light: "Light", dark: "Dark" }[theme];
    button.setAttribute("aria-label", `${button.textContent} colours. Change to ${THEMES[theme]}`);
  };
  button.onclick = () => {
    preference("theme", THEMES[preference("theme") ?? "system"]);
    apply();
  };
  apply();
}

async function start() {
  startTheme();
  setDrawView(drawAll);
  document.getElementById("help").onclick = showHelp;
  document.getElementById("views").onkeydown = moveInViews;
  // The fragment of the address names the view, so that the link cannot name its target there.
  document.getElementById("skip").onclick = (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  };
  startShortcuts((index) => views()[index] && (location.hash = `#/${views()[index].name}`));
  setInterval(() => current.isTicking?.() && !document.hidden && redraw(), 1_000);
  // A wrong or used token does not end a session that this browser has.
  await login().catch(() => {});
  window.addEventListener("hashchange", show);
  ({ view: current, argument } = readAddress());
  current.enter?.();
  drawAll();
  follow({ onEvent: receive, onLink: showLink });
}

start();
