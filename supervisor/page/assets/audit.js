// The audit log: filters, pages, and verification.

import { get, post } from "./api.js";
import { code, h, untrusted, visible } from "./dom.js";
import { number, plural, time } from "./format.js";
import { announce, tellError } from "./messages.js";
import { callName, clientName, empty, facts, runLink, table, timeElement, viewHead } from "./parts.js";
import { may, redraw } from "./state.js";

const EVENTS = ["execution", "call", "outcome", "denial", "approval", "question", "end", "refusal", "reload", "token", "login", "definition", "skill", "gap", "open", "checkpoint", "close"];
const FIELDS = [
  { name: "event", label: "Event", options: EVENTS },
  { name: "decision", label: "Decision", options: ["allow", "ask", "deny"] },
  { name: "server", label: "Server" },
  { name: "tool", label: "Tool" },
  { name: "client", label: "Client" },
  { name: "outcome", label: "Outcome" },
  { name: "execution", label: "Run" },
  { name: "since", label: "Since", placeholder: "7d, 2h, 2026-01-31" },
  { name: "until", label: "Until", placeholder: "now" },
];

/** The loaded pages of records, with the filter that they match. */
let page = { filter: {}, records: null, next: null, isComplete: true, isLoading: false, error: null };
let verification = null;

async function load(filter, before) {
  const earlier = before ? page.records : [];
  page = { ...page, filter, isLoading: true, error: null };
  redraw();
  try {
    const query = new URLSearchParams(Object.entries({ ...filter, ...(before ? { before } : {}) }));
    const { records, next, complete } = await get(`/api/audit?${query}`);
    page = { filter, records: [...earlier, ...records], next, isComplete: complete, isLoading: false, error: null };
    announce(`${plural(page.records.length, "record")} shown.`);
  } catch (error) {
    page = { ...page, isLoading: false, error: error.message };
  }
  redraw();
}

async function verify() {
  if (verification?.isBusy) return;
  verification = { isBusy: true };
  redraw();
  try {
    verification = await post("/api/audit/verify", {});
    announce(`The audit log is ${verification.state}.`);
  } catch (error) {
    verification = null;
    tellError(error);
  }
  redraw();
}

function submit(event) {
  event.preventDefault();
  const filter = {};
  for (const [name, value] of new FormData(event.currentTarget)) if (value.trim()) filter[name] = value.trim();
  load(filter);
}

function filterForm() {
  const control = ({ name, options, placeholder }) =>
    options
      ? h("select", { name }, h("option", { value: "" }, "any"), options.map((option) => h("option", { value: option }, option)))
      : h("input", { name, placeholder, autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "256" });
  const reset = (event) => {
    event.currentTarget.form.reset();
    load({});
  };
  return h(
    "form",
    { class: "panel", key: "filter", role: "search", "aria-label": "Filter of the audit log", onsubmit: submit },
    h("div", { class: "filters" }, FIELDS.map((field) => h("label", { class: "field", key: field.name }, field.label, control(field)))),
    h(
      "div",
      { class: "row" },
      h("button", { class: "primary", type: "submit" }, "Show records"),
      h("button", { type: "button", onclick: reset }, "Clear"),
      page.isLoading ? h("span", { class: "muted" }, "Loading…") : null,
    ),
  );
}

function verificationPanel() {
  if (!verification) return null;
  if (verification.isBusy) return h("p", { class: "notice", key: "verification" }, "Lockhouse verifies the chain of records, the signatures and the programs…");
  const { state, segments, records, programs, unsigned, key, faults, fault_count: faultCount, notes, note_count: noteCount } = verification;
  const finding = (one) => h("li", null, [one.file, one.line].filter((part) => part != null).join(":"), one.record != null ? `, record ${one.record}` : "", ": ", untrusted(one.what));
  const list = (title, all, total) =>
    total
      ? h("details", { open: title === "Faults" }, h("summary", null, `${title}: ${number(total)}`), h("ul", null, all.map(finding)))
      : null;
  const tone = state === "verified" ? "good" : state === "empty" ? "warn" : "bad";
  const heading = { verified: "The log is verified: no fault was found.", empty: "The log is empty.", faults: `The log was changed: ${plural(faultCount, "fault")}.` };
  return h(
    "section",
    { class: `notice ${tone}`, key: "verification", role: "status" },
    h("strong", null, heading[state] ?? state),
    h("p", { class: "small-text" }, `${plural(segments, "segment")}, ${plural(records, "record")}, ${plural(programs, "program")}; ${number(unsigned)} not signed yet. Key: `, code(String(key ?? "").slice(0, 16))),
    list("Faults", faults, faultCount),
    list("Notes", notes, noteCount),
  );
}

const COLUMNS = [{ label: "Time" }, { label: "Event" }, { label: "Client", wide: true }, { label: "Subject" }, { label: "Result" }, { label: "Record", wide: true }];

function subject(record) {
  const item = record.tool ?? record.resource ?? record.prompt ?? record.list;
  if (record.server) return item ? callName(record.server, item) : untrusted(record.server);
  if (record.skill) return untrusted(`skill ${record.skill}`);
  if (record.token) return untrusted(`token ${record.token}`);
  return record.execution ? runLink(record.execution) : "";
}

function recordRow({ segment, record }) {
  const result = [record.decision, record.outcome ?? record.status, record.approval && `approved: ${record.approval}`].filter(Boolean).join(", ");
  return {
    key: `${segment} ${record.seq}`,
    cells: [
      timeElement(record.time, time(record.time)),
      record.event,
      "client" in record || ["execution", "call", "end"].includes(record.event) ? clientName(record.client) : "",
      [subject(record), record.server && record.execution ? h("div", { class: "small-text" }, runLink(record.execution)) : null],
      [untrusted(result), record.reason ? h("div", { class: "muted small-text" }, untrusted(record.reason)) : null],
      h(
        "details",
        null,
        h("summary", { class: "nowrap", "data-item": true }, `#${record.seq}`),
        h("pre", { class: "listing", dir: "ltr" }, visible(JSON.stringify(record, null, 2))),
        h("div", { class: "muted small-text" }, segment),
      ),
    ],
  };
}

function recordsPanel() {
  if (page.error) return h("p", { class: "notice bad", key: "error" }, page.error);
  if (!page.records) return h("p", { class: "muted", key: "loading" }, "Loading…");
  if (!page.records.length) return empty("No record matches", "Widen the filter, or choose an earlier time in “Since”.");
  return h(
    "section",
    { class: "panel flush", key: "records" },
    h("div", { class: "panel-head" }, h("h2", null, plural(page.records.length, "record")), h("span", { class: "muted small-text" }, "newest first")),
    table("Records of the audit log", COLUMNS, page.records.map(recordRow)),
  );
}

function render() {
  return [
    viewHead(
      "Audit log",
      "Every run, call, decision and administrative action, in a signed hash chain.",
      h("button", { type: "button", onclick: () => load(page.filter) }, "Refresh"),
      may("audit") ? h("button", { type: "button", onclick: verify }, "Verify the log") : null,
    ),
    verificationPanel(),
    filterForm(),
    page.isComplete ? null : h("p", { class: "notice warn", key: "incomplete" }, "The log is too long to be searched as a whole. Choose a later time in “Since”."),
    recordsPanel(),
    page.next
      ? h("div", { class: "row", key: "more" }, h("button", { type: "button", "aria-disabled": page.isLoading ? "true" : null, onclick: () => page.isLoading || load(page.filter, page.next) }, "Older records"))
      : null,
  ];
}

export const audit = {
  name: "audit",
  title: "Audit log",
  render,
  enter() {
    if (!page.records) load({});
  },
};
