// The protections of this host: the sandbox of each language engine, and a check as by `lockhouse doctor`.

import { post } from "./api.js";
import { code, h, untrusted } from "./dom.js";
import { number, plural, span } from "./format.js";
import { announce, tell, tellError } from "./messages.js";
import { empty, facts, stateLabel, table, viewHead } from "./parts.js";
import { may, redraw, state } from "./state.js";

let check = null;

async function runCheck() {
  if (check?.isBusy) return;
  check = { isBusy: true };
  redraw();
  try {
    check = await post("/api/host/check", {});
    announce(`The protection of this host is ${check.level}.`);
  } catch (error) {
    check = null;
    tellError(error);
  }
  redraw();
}

async function reload() {
  try {
    const { reloads } = await post("/api/reload", {});
    const refused = reloads.filter((one) => !one.accepted);
    for (const one of refused) tell("bad", `Process ${one.supervisor} refused: ${one.message}`);
    if (!refused.length) tell("good", `${plural(reloads.length, "process", "processes")} loaded the configuration and the policy.`);
  } catch (error) {
    tellError(error);
  }
}

export function protectionLabel(level) {
  if (level === "full") return stateLabel("good", "full protection");
  return level === "reduced" ? stateLabel("warn", "reduced protection") : stateLabel("bad", "no protection");
}

function engine(name, one) {
  const label = one.state === "ready" ? protectionLabel(one.sandbox) : stateLabel(one.state === "missing" ? "bad" : "neutral", one.state);
  const { pool } = one;
  return h(
    "div",
    { key: name },
    h("div", { class: "row" }, h("strong", null, name), label, h("span", { class: "muted small-text" }, one.runtime ?? "")),
    one.reason ? h("p", { class: "small-text" }, untrusted(one.reason)) : null,
    pool ? h("p", { class: "muted small-text" }, `${number(pool.running)} of ${number(pool.places)} workers run, ${number(pool.idle)} idle, ${number(pool.waiting)} runs wait`) : null,
    one.reduced?.length ? h("ul", { class: "plain small-text" }, one.reduced.map((reason) => h("li", null, untrusted(reason)))) : null,
  );
}

export function processPanel(health) {
  const audit = health.audit.writable ? stateLabel("good", "writable") : stateLabel("bad", "cannot be written");
  return h(
    "article",
    { class: "panel", key: health.pid },
    h(
      "div",
      { class: "panel-head" },
      h("h2", null, `Process ${health.pid}`),
      health.draining ? stateLabel("warn", "draining") : health.ready ? stateLabel("good", "ready") : stateLabel("bad", "not ready"),
    ),
    health.reasons?.map((reason) => h("p", { class: "notice warn" }, untrusted(reason))),
    facts(
      ["Version", code(health.version)],
      ["Up for", span((Date.now() - new Date(health.started)) / 1000)],
      ["Runs", `${number(health.running)} running, ${number(health.queue)} waiting`],
      ["Audit log", audit],
      ["Configuration", `generation ${health.configuration.generation}`],
    ),
    Object.entries(health.engines).map(([name, one]) => engine(name, one)),
  );
}

const COLUMNS = [{ label: "Protection" }, { label: "Verdict" }, { label: "Needed for" }, { label: "Found" }, { label: "What to do" }];
const VERDICTS = { holds: "good", absent: "warn", BROKEN: "bad" };

function checkResult() {
  if (!check) return null;
  if (check.isBusy) return h("p", { class: "notice", key: "check" }, "Lockhouse starts workers and tests each protection; this takes some seconds…");
  const rows = check.protections.map((one) => ({
    key: one.protection,
    cells: [
      one.protection,
      stateLabel(VERDICTS[one.verdict] ?? "neutral", one.verdict),
      one.needed,
      untrusted(one.found ?? ""),
      one.verdict === "holds" ? "" : advice(one),
    ],
  }));
  return h(
    "section",
    { class: "panel flush", key: "check" },
    h("div", { class: "panel-head" }, h("h2", null, "Protections of this host"), protectionLabel(check.level)),
    table("Protections of this host", COLUMNS, rows),
  );
}

/** What a person can do about a protection that does not hold, and what its absence means. */
function advice({ fix, second_layer: second, without_it: without }) {
  const lines = [fix, second && `Covered by: ${second}`, without && `Without it: ${without}`];
  return lines.filter(Boolean).map((text, index) => h("div", { class: index ? "muted small-text" : null }, text));
}

const HOST_COLUMNS = [{ label: "Host" }, { label: "State" }, { label: "Address" }, { label: "Version" }, { label: "Runs" }, { label: "Free workers" }, { label: "Sessions" }];

/** The hosts of the cluster that this host is part of. */
function cluster({ hosts, cluster_problems: problems }) {
  const rows = hosts.map((one) => ({
    key: one.name,
    cells: [
      one.is_this ? `${one.name} (this)` : one.name,
      stateLabel(one.state === "serving" ? "good" : "warn", one.state),
      code(one.address),
      code(one.version),
      number(one.runs),
      number(one.free),
      number(one.sessions),
    ],
  }));
  return h(
    "section",
    { class: "panel flush", key: "cluster" },
    h("div", { class: "panel-head" }, h("h2", null, "Hosts of the cluster")),
    problems.map((problem) => h("p", { class: "notice warn", key: problem }, untrusted(problem))),
    table("Hosts of the cluster", HOST_COLUMNS, rows),
  );
}

function readableSecrets(secrets) {
  const text = (one) => [code(one.file), ` can be read by ${one.readers}. ${one.fix ?? ""}`];
  return h("div", { class: "notice warn", key: "secrets" }, h("strong", null, "Files with secrets that others can read"), h("ul", null, secrets.map((one) => h("li", null, text(one)))));
}

function render() {
  const processes = state.processes?.processes ?? [];
  return [
    viewHead(
      "Host",
      "The running Lockhouse processes, and the sandbox that each language engine has on this host.",
      may("operate") ? [h("button", { type: "button", onclick: runCheck }, "Check the protections"), h("button", { type: "button", onclick: reload }, "Reload the configuration")] : null,
    ),
    processes.length
      ? h("div", { class: "panels", key: "processes" }, processes.map(processPanel))
      : empty("No Lockhouse process is running", "An AI client starts it, or start it with lockhouse serve."),
    state.processes?.hosts?.length ? cluster(state.processes) : null,
    checkResult(),
    check?.readable_secrets?.length ? readableSecrets(check.readable_secrets) : null,
  ];
}

export const host = { name: "host", title: "Host", rights: ["operate"], render };
