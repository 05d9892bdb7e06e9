// The details of one run: its program, its calls on a time axis, and what it kept.

import { get } from "./api.js";
import { code, h, untrusted } from "./dom.js";
import { bytes, duration, number, plural, span, time } from "./format.js";
import { clientName, empty, facts, programLines, timeElement, viewHead } from "./parts.js";
import { resultTable } from "./results.js";
import { elapsed, endButton, isActive, runState } from "./runs.js";
import { redraw, state } from "./state.js";
import { callTable, waterfall } from "./waterfall.js";

/** A run that makes calls changes all the time; its details are loaded at most this often. */
const RELOAD_INTERVAL_MS = 1_000;

/** The run whose details are shown: `{execution, details, error, revision, isLoading, loadedAt}`. */
let shown = {};

function listed(execution) {
  const { active, recent } = state.runs ?? { active: [], recent: [] };
  return [...active, ...recent].find((run) => run.execution === execution);
}

async function load(entry, revision) {
  Object.assign(entry, { isLoading: true, loadedAt: performance.now() });
  try {
    entry.details = await get(`/api/runs/${encodeURIComponent(entry.execution)}`);
    Object.assign(entry, { revision, error: null });
  } catch (error) {
    Object.assign(entry, { revision, error: error.message });
  }
  entry.isLoading = false;
  redraw();
}

/** Loads the details if they are not those of the current revision. */
function refresh(execution) {
  if (shown.execution !== execution) shown = { execution, details: null, error: null, loadedAt: -Infinity };
  const run = listed(execution);
  // The state is part of the revision, so that the end of a run is loaded too.
  const revision = run ? `${run.revision} ${run.state} ${run.status}` : "not listed";
  if (shown.revision === revision || shown.isLoading) return;
  const wait = shown.loadedAt + RELOAD_INTERVAL_MS - performance.now();
  if (wait > 0) setTimeout(redraw, wait);
  else load(shown, revision);
}

export function runDetails(execution) {
  refresh(execution);
  const run = listed(execution) ?? shown.details?.run;
  const back = h("a", { class: "button small", href: "#/runs" }, "All runs");
  if (!run) {
    const text = shown.error ?? "Loading…";
    return [viewHead("Run", code(execution), back), shown.error ? empty("This run cannot be shown", text) : h("p", { class: "muted", key: "loading" }, text)];
  }
  const canEnd = isActive(run) && run.supervisor !== null;
  return [
    viewHead("Run", code(execution), back, canEnd ? endButton(run) : null),
    shown.error ? h("p", { class: "notice bad", key: "error" }, shown.error) : null,
    aboutRun(run),
    shown.details ? [calls(run), program(), kept(execution)] : h("p", { class: "muted", key: "loading" }, "Loading…"),
  ];
}

function aboutRun(run) {
  const policy = shown.details?.policy;
  const servers = shown.details?.servers ?? [];
  return h(
    "section",
    { class: "panel", key: "about", "aria-label": "About the run" },
    facts(
      ["State", h("span", { class: "row" }, runState(run), run.waiting_for ? h("span", null, untrusted(run.waiting_for)) : null)],
      ["Reason", run.reason && untrusted(run.reason)],
      ["Client", clientName(run.client)],
      ["Language", run.language],
      ["Session", run.session && untrusted(run.session)],
      ["Started", timeElement(run.started, time(run.started))],
      ["Duration", isActive(run) ? `${span(elapsed(run) / 1000)} so far` : duration(run.wall_ms ?? NaN)],
      ["CPU time", run.cpu_ms === null ? null : duration(run.cpu_ms)],
      ["Memory", run.memory_bytes === null ? null : bytes(run.memory_bytes)],
      ["Worker", run.pid === null ? null : `process ${run.pid}`],
      ["Data", `${bytes(run.result_bytes)} of results for the code${run.answer_bytes === null ? "" : `, ${bytes(run.answer_bytes)} of answer for the model`}`],
      ["Servers", servers.length ? servers.map((server, index) => [index ? ", " : null, untrusted(server)]) : null],
      ["Policy", policy && code(policy.slice(0, 16))],
    ),
  );
}

function calls(run) {
  const { calls, calls_left_out: leftOut } = shown.details;
  const denied = calls.filter((call) => call.decision === "deny").length;
  return h(
    "section",
    { class: "panel", key: "calls", "aria-labelledby": "calls-title" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", { id: "calls-title" }, plural(calls.length + leftOut, "call")),
      h("span", { class: "muted small-text" }, denied ? `${number(denied)} denied` : ""),
    ),
    calls.length ? waterfall(calls, elapsed(run)) : h("p", { class: "muted" }, "The program has made no call."),
    leftOut ? h("p", { class: "muted" }, `${plural(leftOut, "further call")} not shown; see lockhouse audit show.`) : null,
    calls.length ? h("details", { key: "table" }, h("summary", null, "The same as a table, with sizes, decisions and reasons"), callTable(calls)) : null,
  );
}

function program() {
  const { program, calls } = shown.details;
  const lines = new Set(calls.filter((call) => call.line).map((call) => call.line));
  return h(
    "section",
    { class: "panel", key: "program", "aria-labelledby": "program-title" },
    h(
      "div",
      { class: "panel-head" },
      h("h2", { id: "program-title" }, "Program"),
      lines.size ? h("span", { class: "muted small-text" }, "Lines that made calls, as the worker reports them, are marked") : null,
    ),
    program.note ? h("p", { class: program.state === "replaced" ? "notice bad" : "muted" }, program.note) : null,
    program.text !== null ? programLines(program.text, lines) : null,
    program.truncated ? h("p", { class: "muted" }, "The program is longer than what is shown.") : null,
  );
}

function kept(execution) {
  const results = (state.results?.results ?? []).filter((result) => result.execution === execution);
  if (!results.length) return null;
  return h(
    "section",
    { class: "panel flush", key: "kept", "aria-labelledby": "kept-title" },
    h("div", { class: "panel-head" }, h("h2", { id: "kept-title" }, "Kept results")),
    resultTable(results),
  );
}
