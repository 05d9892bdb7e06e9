// Upstream servers: their state and latency, and changed definitions of their tools to accept.

import { post } from "./api.js";
import { code, h, untrusted } from "./dom.js";
import { duration, number, plural, time } from "./format.js";
import { sign } from "./keys.js";
import { announce, tell, tellError } from "./messages.js";
import { diff, empty, facts, stateLabel, timeElement, viewHead } from "./parts.js";
import { may, redraw, state } from "./state.js";

/** The reviews that the person has opened, by server: `{answer, isBusy}`. */
const reviews = new Map();

const TONES = { connected: "good", idle: "neutral", connecting: "neutral", failed: "bad" };
const CHANGES = { changed: "changed", new: "new", not_comparable: "cannot be compared" };

async function review(server) {
  if (reviews.get(server)?.isBusy) return;
  const entry = { answer: null, isBusy: true };
  reviews.set(server, entry);
  redraw();
  try {
    entry.answer = await post("/api/servers/review", { server });
    announce(`${plural(entry.answer.changes.length, "changed tool")} of ${server}.`);
  } catch (error) {
    reviews.delete(server);
    tellError(error);
  }
  entry.isBusy = false;
  redraw();
}

async function accept(server) {
  const entry = reviews.get(server);
  if (entry.isBusy) return;
  entry.isBusy = true;
  redraw();
  try {
    const { digest, presence } = entry.answer;
    const proof = presence === "key" ? await sign("/api/servers/challenge", { server, digest }) : null;
    const { message } = await post("/api/servers/accept", { server, digest, proof });
    reviews.delete(server);
    tell("good", message);
  } catch (error) {
    tellError(error);
    entry.isBusy = false;
    // The server's tools are others than those shown: the person reads the new ones before they accept them.
    if (error.code === "stale") await review(server);
  }
  entry.isBusy = false;
  redraw();
}

function changePanel({ tool, change, since, diff: text }) {
  return h(
    "section",
    { key: `change ${tool}`, class: "panel" },
    h(
      "div",
      { class: "panel-head" },
      h("h3", null, code(tool)),
      h("span", { class: "small-text" }, stateLabel("warn", CHANGES[change] ?? change), since ? ` since it was accepted, ${time(since)}` : null),
    ),
    diff(text, `Change of ${tool}`),
  );
}

function reviewPanel(server) {
  const entry = reviews.get(server);
  if (!entry) return null;
  if (!entry.answer) return h("p", { class: "muted", key: "review" }, "Lockhouse connects to the server and compares its tools; this takes up to a minute.");
  const { changes, gone, error, digest } = entry.answer;
  const close = () => {
    reviews.delete(server);
    redraw();
  };
  return h(
    "div",
    { class: "questions", key: "review" },
    error ? h("p", { class: "notice bad" }, error) : null,
    changes.length ? null : h("p", null, "No definition differs from the accepted ones."),
    changes.map(changePanel),
    gone.length ? h("p", { class: "muted" }, "No longer offered: ", gone.map((tool, index) => [index ? ", " : null, code(tool)])) : null,
    h(
      "div",
      { class: "row" },
      changes.length || gone.length
        ? h("button", { type: "button", class: "primary", "aria-disabled": entry.isBusy ? "true" : null, onclick: () => accept(server) }, "Accept these definitions")
        : null,
      h("button", { type: "button", onclick: close }, "Close"),
      h("span", { class: "muted small-text" }, code(digest.slice(0, 23))),
    ),
  );
}

function stateRow(one) {
  return [
    stateLabel(TONES[one.state] ?? "neutral", one.state),
    h("span", { class: "muted small-text" }, ` process ${one.supervisor}, ${number(one.answered)} calls answered, ${plural(one.reconnects, "reconnect")}`),
    one.reason ? h("div", { class: "small-text" }, untrusted(one.reason)) : null,
  ];
}

function card(server) {
  const tools = Math.max(0, ...server.states.map((one) => one.tools ?? 0));
  const changed = Math.max(0, ...server.states.map((one) => one.changed_tools ?? 0));
  const { latency } = server;
  return h(
    "article",
    { class: reviews.get(server.name)?.answer ? "panel expanded" : "panel", key: server.name, tabindex: "-1", "data-item": true },
    h(
      "div",
      { class: "panel-head" },
      h("h2", { id: `server-${server.name}` }, untrusted(server.name)),
      changed ? stateLabel("warn", `${plural(changed, "tool")} changed`) : null,
    ),
    facts(
      ["State", server.states.length ? server.states.map((one) => h("div", { key: one.supervisor }, stateRow(one))) : "not started"],
      ["Tools", tools ? number(tools) : "–"],
      [
        "Latency",
        latency
          ? `p50 ${duration(latency.p50_ms)}, p95 ${duration(latency.p95_ms)} of ${plural(latency.calls, "call")}, ${plural(latency.errors, "error")}`
          : "no call recorded",
      ],
      ["Last call", server.last_call ? timeElement(server.last_call, time(server.last_call)) : "–"],
    ),
    changed ? h("p", { class: "notice warn" }, "Programs cannot call a changed tool before you accept its new definition.") : null,
    may("policy")
      ? h("div", { class: "row" }, h("button", { type: "button", class: changed ? "primary" : "small", onclick: () => review(server.name), "aria-describedby": `server-${server.name}` }, changed ? "Review the changes" : "Compare definitions"))
      : null,
    reviewPanel(server.name),
  );
}

function render() {
  const servers = state.servers?.servers ?? [];
  return [
    viewHead("Servers", "The MCP servers that programs can import, as each running Lockhouse process sees them."),
    servers.length
      ? h("div", { class: "panels", key: "servers" }, servers.map(card))
      : empty("No server is configured", "Add one with lockhouse server add, or take those of your AI clients over with lockhouse setup."),
  ];
}

export const servers = { name: "servers", title: "Servers", rights: ["policy", "operate"], render };
