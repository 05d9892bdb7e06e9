// The overview: what needs the person, what runs, and what happened last.

import { post } from "./api.js";
import { pendingCount } from "./approvals.js";
import { h, untrusted } from "./dom.js";
import { number, plural, time } from "./format.js";
import { protectionLabel } from "./host.js";
import { tellError } from "./messages.js";
import { callName, clientName, empty, runLink, stateLabel, timeElement, viewHead } from "./parts.js";
import { isActive, runState } from "./runs.js";
import { tokensOf } from "./savings.js";
import { may, state } from "./state.js";

const LATEST = 6;

function figure(href, label, value, note) {
  return h(
    "a",
    { class: "figure", href, key: label, "data-item": true },
    h("span", { class: "label" }, label),
    h("span", { class: "value" }, value),
    h("span", { class: "note" }, note),
  );
}

/** The number of tokens that were kept out today and on all days. */
function savedTokens() {
  const days = state.savings?.days ?? [];
  const today = new Date().toISOString().slice(0, 10);
  const sum = (list) => list.reduce((total, day) => total + tokensOf(day), 0);
  return { today: sum(days.filter((day) => day.day === today)), all: sum(days), days: days.length };
}

function serverFigure() {
  const servers = state.servers?.servers ?? [];
  // Without a process, nobody knows whether a server is available.
  if (!state.processes?.processes.length) return figure("#/servers", "Servers", number(servers.length), "configured; no Lockhouse process runs");
  const isIn = (server, wanted) => server.states.some((one) => wanted.includes(one.state));
  const failed = servers.filter((server) => isIn(server, ["failed"])).length;
  const changed = servers.filter((server) => server.states.some((one) => one.changed_tools > 0)).length;
  const usable = servers.filter((server) => isIn(server, ["connected", "idle"])).length;
  const notes = [failed && `${failed} failed`, changed && `${changed} with changed tools`].filter(Boolean);
  return figure("#/servers", "Servers", `${number(usable)} of ${number(servers.length)}`, notes.join(", ") || "available");
}

function figures() {
  const active = state.runs?.active ?? [];
  const denials = state.denials?.denials ?? [];
  const denied = denials.reduce((sum, denial) => sum + denial.count, 0);
  const saved = savedTokens();
  const pending = pendingCount();
  return h(
    "div",
    { class: "figures", key: "figures" },
    figure("#/approvals", "Approvals", number(pending), pending ? `${pending === 1 ? "waits" : "wait"} for your answer` : "nothing waits"),
    figure("#/runs", "Active runs", number(active.length), plural(active.filter((run) => run.state !== "running").length, "waits", "wait")),
    figure("#/denials", "Denied calls", number(denied), denied ? plural(denials.length, "different call") : "none"),
    may("policy") || may("operate") ? serverFigure() : null,
    figure("#/savings", "Tokens kept out", number(saved.today), `today; ${number(saved.all)} in ${plural(saved.days, "day")}`),
  );
}

function latestRuns() {
  const { active, recent } = state.runs ?? { active: [], recent: [] };
  const row = (run) =>
    h(
      "li",
      { key: run.execution, class: "entry" },
      h("span", { class: "row" }, runLink(run.execution), runState(run)),
      h("span", { class: "muted small-text" }, clientName(run.client), ` · ${run.language} · ${plural(run.calls, "call")} · `, timeElement(run.started, time(run.started))),
    );
  const latest = [...active, ...recent].slice(0, LATEST);
  return listPanel("Latest runs", "#/runs", latest.map(row), "No run yet.");
}

function latestDenials() {
  const row = (denial) =>
    h(
      "li",
      { key: `${denial.server} ${denial.item} ${denial.client} ${denial.rule} ${denial.decision}`, class: "entry" },
      h("span", { class: "row" }, h("span", { class: "clamp" }, callName(denial.server, denial.item)), denial.count > 1 ? h("span", { class: "badge" }, `${number(denial.count)}×`) : null),
      h("span", { class: "muted small-text" }, clientName(denial.client), " · ", timeElement(denial.last, time(denial.last))),
    );
  return listPanel("Latest denials", "#/denials", (state.denials?.denials ?? []).slice(0, LATEST).map(row), "No call was denied.");
}

function listPanel(title, href, rows, none) {
  return h(
    "section",
    { class: "panel", key: title },
    h("div", { class: "panel-head" }, h("h2", null, title), h("a", { href, "aria-label": `All: ${title.toLowerCase()}` }, "All")),
    rows.length ? h("ul", { class: "entries" }, rows) : h("p", { class: "muted" }, none),
  );
}

function processes() {
  const row = (health) =>
    h(
      "li",
      { key: health.pid, class: "entry" },
      h("span", { class: "row" }, h("span", null, `process ${health.pid}`), health.ready ? stateLabel("good", "ready") : stateLabel("bad", "not ready")),
      Object.entries(health.engines).map(([name, engine]) =>
        h("span", { class: "row small-text", key: name }, h("span", { class: "muted" }, name), engine.state === "ready" ? protectionLabel(engine.sandbox) : stateLabel("neutral", engine.state)),
      ),
      health.reasons?.map((reason) => h("span", { class: "small-text" }, untrusted(reason))),
    );
  return listPanel("Lockhouse processes", "#/host", (state.processes?.processes ?? []).map(row), "No Lockhouse process serves AI clients or runs code.");
}

async function leave() {
  await post("/api/logout", {}).catch(tellError);
  location.reload();
}

function render() {
  const isIdle = !state.processes?.processes.length && !state.runs?.recent.length;
  return [
    viewHead("Overview", state.hello ? `Lockhouse ${state.hello.version}, user ${state.hello.user}` : "", h("button", { type: "button", onclick: leave }, "Log out")),
    state.hello?.audit === false ? h("p", { class: "notice warn", key: "audit" }, `The audit log cannot be read: ${state.hello.audit_error ?? "unknown reason"}. Past runs, denials and savings are missing.`) : null,
    figures(),
    isIdle
      ? empty("Nothing has run yet", "Connect an AI client with lockhouse setup, or try lockhouse demo.")
      : h("div", { class: "panels narrow", key: "panels" }, latestRuns(), latestDenials(), may("operate") ? processes() : null),
  ];
}

export const overview = { name: "overview", title: "Overview", render };
