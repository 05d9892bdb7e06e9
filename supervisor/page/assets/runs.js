// Runs: those that are active and the latest ones, and the sessions that are kept between runs.

import { post } from "./api.js";
import { h, untrusted } from "./dom.js";
import { bytes, duration, number, plural, span, time } from "./format.js";
import { confirmAction, tell, tellError } from "./messages.js";
import { clientName, empty, runLink, stateLabel, table, timeElement, viewHead } from "./parts.js";
import { runDetails } from "./run.js";
import { state } from "./state.js";
import { steadyOrder } from "./steady_order.js";

const TONES = { ok: "good", error: "bad", timeout: "bad", killed: "bad", refused: "warn", cancelled: "neutral", unknown: "neutral" };

export function runState(run) {
  switch (run.state) {
    case "running":
      return stateLabel("good", "running");
    case "waiting":
      return stateLabel("neutral", "waits for a worker");
    case "waiting for a person":
      return stateLabel("warn", "waits for a person");
    default:
      return stateLabel(TONES[run.status] ?? "bad", run.status ?? "ended");
  }
}

export function isActive(run) {
  return run.state !== "ended";
}

/** The duration of a run in milliseconds, so far if it is active. */
export function elapsed(run) {
  return run.wall_ms ?? Math.max(0, Date.now() - new Date(run.started));
}

/** Asks the person, and ends the run. */
export async function endRun(run) {
  const who = run.client ? `the program of ${run.client}` : "the program";
  if (!(await confirmAction("End this run?", `Lockhouse stops ${who} at once. Calls that were already made are not undone.`, "End the run"))) return;
  try {
    await post("/api/runs/end", { supervisor: run.supervisor, execution: run.execution });
    tell("good", "The run is being ended.");
  } catch (error) {
    tellError(error);
  }
}

async function endSession(session) {
  if (!(await confirmAction("End this session?", `The variables of the session ${session.name} are lost.`, "End the session"))) return;
  try {
    await post("/api/sessions/end", { supervisor: session.supervisor, id: session.id });
    tell("good", `The session ${session.name} was ended.`);
  } catch (error) {
    tellError(error);
  }
}

export function endButton(run) {
  return h("button", { type: "button", class: "small danger", onclick: () => endRun(run), "aria-label": `End the run ${run.execution.slice(0, 13)}` }, "End");
}

const COLUMNS = [
  { label: "Run" },
  { label: "State" },
  { label: "Client", wide: true },
  { label: "Started" },
  { label: "Duration", number: true },
  { label: "CPU", number: true },
  { label: "Memory", number: true },
  { label: "Calls", number: true },
  { label: "" },
];

function runRow(run) {
  const denied = run.denied ? h("div", { class: "small-text" }, stateLabel("bad", `${plural(run.denied, "call")} denied`)) : null;
  const why = run.waiting_for ?? run.reason;
  return {
    key: run.execution,
    cells: [
      [runLink(run.execution), run.session ? h("div", { class: "muted small-text" }, "session ", untrusted(run.session)) : null],
      [runState(run), denied, why ? h("div", { class: "muted small-text" }, untrusted(why)) : null],
      [clientName(run.client), h("div", { class: "muted small-text" }, run.language)],
      timeElement(run.started, time(run.started)),
      isActive(run) ? span(elapsed(run) / 1000) : duration(run.wall_ms ?? NaN),
      duration(run.cpu_ms ?? NaN),
      run.memory_bytes === null ? "–" : bytes(run.memory_bytes),
      number(run.calls),
      isActive(run) && run.supervisor !== null ? endButton(run) : null,
    ],
  };
}

export function runTable(caption, runs) {
  return table(caption, COLUMNS, runs.map(runRow));
}

const order = steadyOrder();

function sessionPanel(sessions) {
  const columns = [{ label: "Session" }, { label: "Owner", wide: true }, { label: "Language" }, { label: "State" }, { label: "Age", number: true }, { label: "" }];
  const row = (session) => ({
    key: `${session.supervisor} ${session.id}`,
    cells: [
      untrusted(session.name),
      untrusted(session.owner),
      session.language,
      session.state,
      span(elapsed(session) / 1000),
      h("button", { type: "button", class: "small danger", onclick: () => endSession(session), "aria-label": `End the session ${session.name}` }, "End"),
    ],
  });
  return h(
    "section",
    { class: "panel flush", key: "sessions" },
    h("div", { class: "panel-head" }, h("h2", null, "Sessions"), h("span", { class: "muted small-text" }, "Workers whose variables are kept between runs")),
    table("Sessions", columns, sessions.map(row)),
  );
}

function render(execution) {
  if (execution) return runDetails(execution);
  const { active, recent } = state.runs ?? { active: [], recent: [] };
  const all = order([...active, ...recent], (run) => run.execution);
  const sessions = state.sessions?.sessions ?? [];
  return [
    viewHead("Runs", `${plural(active.length, "active run")}, then the latest that have ended. The order is held while you point at the list.`),
    all.length
      ? h("section", { class: "panel flush", key: "runs", "data-steady": true }, runTable("Runs", all))
      : empty("No run yet", "Runs of all your AI clients appear here as soon as they start."),
    sessions.length ? sessionPanel(sessions) : null,
  ];
}

export const runs = { name: "runs", title: "Runs", render, isTicking: () => state.runs?.active.length > 0 };
