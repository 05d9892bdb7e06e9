// The calls of a run on a time axis, with a table of the same data.

import { h, untrusted } from "./dom.js";
import { bytes, duration, plural } from "./format.js";
import { callName, stateLabel, table } from "./parts.js";

/** Positions of the marks of the axis, as parts of the whole. */
const MARKS = [0, 0.25, 0.5, 0.75];

/**
 * The end of a call in milliseconds from the start of the run; `now` for a call that is in flight. The duration of a call
 * includes the time for which it waited for approval.
 */
function endOf(call, now) {
  return call.ms === null ? now : Math.min(call.start_ms, call.asked_ms ?? Infinity) + call.ms;
}

export function outcomeLabel(call) {
  if (call.decision === "deny") return stateLabel("bad", "denied");
  if (call.outcome === "ok") return stateLabel("good", "ok");
  if (call.outcome !== null) return stateLabel("bad", call.outcome);
  return isAsking(call) ? stateLabel("warn", "waits for approval") : stateLabel("neutral", "running");
}

function isAsking(call) {
  return call.ms === null && Number.isFinite(call.asked_ms) && !call.approval;
}

/** The bars of a call: hatched while it waited for approval, solid while it was with the server. */
function bars(call, total, now) {
  const percent = (ms) => `${Math.min(100, Math.max(0, (ms / total) * 100))}%`;
  const bar = (from, to, tone) =>
    h("span", { class: `bar ${tone}`, vars: { "--start": percent(from), "--width": percent(to - from) } });
  const isWaiting = isAsking(call);
  const asked = Number.isFinite(call.asked_ms) ? call.asked_ms : null;
  const failed = call.decision === "deny" || (call.outcome !== null && call.outcome !== "ok");
  return [
    asked !== null ? bar(asked, isWaiting ? now : call.start_ms, "wait") : null,
    isWaiting ? null : bar(call.start_ms, endOf(call, now), call.ms === null && !failed ? "running" : failed ? "bad" : ""),
  ];
}

/** `elapsedMs`: duration of the run so far, or of the whole run. */
export function waterfall(calls, elapsedMs) {
  const total = Math.max(1, elapsedMs, ...calls.map((call) => endOf(call, elapsedMs)));
  const line = (call) => (call.line ? h("span", { class: "muted" }, ` line ${call.line}`) : null);
  return h(
    "div",
    { class: "waterfall", role: "img", "aria-label": `Time line of ${plural(calls.length, "call")} in ${duration(total)}. The table below has the same data.` },
    h(
      "div",
      { class: "call axis" },
      h("span", null, "Call"),
      h("div", { class: "track" }, MARKS.map((mark) => h("span", null, mark === 0 ? "0" : duration(total * mark)))),
      h("span", null, "Duration, outcome"),
    ),
    calls.map((call) =>
      h(
        "div",
        { class: "call", key: call.call },
        h("span", null, callName(call.server, call.item), line(call)),
        h("div", { class: "track" }, bars(call, total, elapsedMs)),
        h("span", { class: "row timing" }, h("span", null, call.ms === null ? "" : duration(call.ms)), outcomeLabel(call)),
      ),
    ),
  );
}

const COLUMNS = [
  { label: "Call" },
  { label: "Line", number: true },
  { label: "Start", number: true },
  { label: "Duration", number: true },
  { label: "Outcome", wide: true },
  { label: "Decision", wide: true },
  { label: "Arguments", number: true },
  { label: "Result", number: true },
];

export function callTable(calls) {
  return table(
    "Calls of the run",
    COLUMNS,
    calls.map((call) => ({
      key: call.call,
      cells: [
        callName(call.server, call.item),
        call.line ?? "",
        duration(call.start_ms),
        call.ms === null ? "" : duration(call.ms),
        [outcomeLabel(call), call.reason ? h("div", { class: "muted small-text" }, untrusted(call.reason)) : null],
        [call.decision ?? "", call.approval ? ` (approved: ${call.approval})` : "", call.rule ? h("div", { class: "muted small-text" }, untrusted(call.rule)) : null],
        call.arguments_bytes === null ? "" : bytes(call.arguments_bytes),
        call.result_bytes === null ? "" : bytes(call.result_bytes),
      ],
    })),
  );
}
