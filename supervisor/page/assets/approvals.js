// Pending approvals. What a person reads and clicks here never moves on its own: a question keeps its place until the
// person leaves the view, also when it is no longer pending, and a new question is added at the end.

import { post } from "./api.js";
import { h, untrusted } from "./dom.js";
import { countdown, plural, time } from "./format.js";
import { registrationForm, sign } from "./keys.js";
import { announce } from "./messages.js";
import { notificationButton, notifyQuestion } from "./notifications.js";
import { clientName, diff, empty, runLink, stateLabel, timeElement, viewHead } from "./parts.js";
import { forgetProposals, proposalsPanel } from "./proposals.js";
import { may, redraw, state } from "./state.js";

/** After a question appears, its buttons are inactive for this time: a click was meant for something else. */
const INACTIVE_MS = 500;
/** This many questions keep their place after their end. */
const ENDED_MAX = 100;

/**
 * The questions that this page has received, in the order of their arrival: `{question, activeFrom, end, busy, error}`.
 * `activeFrom` is `null` until the question is drawn.
 */
const known = new Map();
let isShown = false;

const identity = (question) => `${question.supervisor}/${question.id}/${question.digest}`;

/** Takes a new list of pending questions. */
export function receiveQuestions(section) {
  const pending = new Map(section.questions.map((question) => [identity(question), question]));
  for (const [id, entry] of known) {
    if (pending.has(id) || entry.end) continue;
    if (isShown) entry.end = { tone: "neutral", text: endText(entry.question) };
    else known.delete(id);
  }
  forgetOldest();
  for (const [id, question] of pending) {
    if (known.has(id)) continue;
    known.set(id, { question, activeFrom: null, end: null, busy: false, error: null });
    announce(`A new question waits for an answer. ${plural(pending.size, "question")} pending.`);
    notifyQuestion(question, isShown);
  }
}

/** Removes the oldest of very many questions that are no longer pending. */
function forgetOldest() {
  const ended = [...known].filter(([, entry]) => entry.end);
  for (const [id] of ended.slice(0, -ENDED_MAX)) known.delete(id);
}

export function pendingCount() {
  return [...known.values()].filter((entry) => !entry.end).length;
}

/** Makes the buttons of all questions inactive for a moment, because they have just come into view. */
function guard() {
  for (const entry of known.values()) entry.activeFrom = null;
  redraw();
}

/** Whether the buttons are inactive. The time begins when the question is drawn. */
function isInactive(entry) {
  return entry.busy || entry.activeFrom === null || performance.now() < entry.activeFrom;
}

function startInactiveTime(entry) {
  entry.activeFrom = performance.now() + INACTIVE_MS;
  setTimeout(redraw, INACTIVE_MS + 20);
}

function endText(question) {
  return new Date(question.expires) <= new Date()
    ? "Expired: nobody answered in time, so the call was not made."
    : "No longer pending: answered elsewhere, or the run has ended.";
}

/** Asks for the reason for which the person approves alone what requires more people. `null` if they gave none. */
function breakGlassReason() {
  const reason = window.prompt("Why do you approve this alone? The audit log records the reason.");
  return reason?.trim() ? reason.trim() : null;
}

async function answer(entry, decision, button, breakGlass = null) {
  if (entry.end || isInactive(entry) || button.hasAttribute("aria-disabled")) return;
  const card = button.closest(".question");
  const { supervisor, id, digest } = entry.question;
  const scope = decision === "approve" ? (card.querySelector("input:checked")?.value ?? "once") : "once";
  Object.assign(entry, { busy: true, error: null });
  redraw();
  try {
    const needsKey = decision === "approve" && entry.question.presence === "key";
    const proof = needsKey ? await sign("/api/approvals/challenge", { supervisor, id, digest, scope }) : null;
    await post("/api/approvals/answer", { supervisor, id, digest, decision, scope, proof, break_glass: breakGlass });
    const text = decision === "approve" ? `Approved (${SCOPES[scope]?.short ?? scope}).` : "Denied.";
    entry.end = { tone: decision === "approve" ? "good" : "bad", text };
  } catch (error) {
    // Without a valid proof, the question stays pending.
    const isOver = error.code === "stale" || (error.code === "refused" && entry.question.presence === "none" && !entry.question.required);
    if (isOver) entry.end = { tone: "warn", text: `Not answered: ${error.message}` };
    else entry.error = error.message;
  }
  entry.busy = false;
  announce(entry.end?.text ?? entry.error);
  redraw();
}

const BUSY = { none: "Sending…", password: "Waiting for your password…", key: "Waiting for your key…" };

const SCOPES = {
  once: { short: "once", text: "Only what is shown" },
  execution: { short: "for this run", text: "Also every further call of the same tools in this run, with any arguments" },
  always: { short: "always", text: "Also in all later runs: the policy file is changed as shown" },
};

function scopeChoice(id, entry) {
  const { scopes } = entry.question;
  return h(
    "fieldset",
    { class: "scopes", disabled: Boolean(entry.end) },
    h("legend", null, "An approval is valid for"),
    scopes.map((scope) =>
      h(
        "label",
        null,
        h("input", { type: "radio", name: `scope ${id}`, value: scope, checked: scope === "once" }),
        h("span", null, h("strong", null, SCOPES[scope]?.short ?? scope), ` – ${SCOPES[scope]?.text ?? ""}`),
      ),
    ),
  );
}

function answerRow(id, entry) {
  if (!may("approve") && !entry.end) {
    return h("p", { class: "muted", key: "who" }, "Somebody who may approve calls answers here. Your AI client may ask you at the same time.");
  }
  if (entry.end) return h("div", { class: "answer", key: "end" }, stateLabel(entry.end.tone, ""), h("strong", null, entry.end.text));
  const isOff = isInactive(entry);
  const button = (verb, decision, tone) =>
    h(
      "button",
      {
        type: "button",
        class: tone,
        "aria-disabled": isOff ? "true" : null,
        "aria-describedby": `question-title-${id}`,
        onclick: (event) => answer(entry, decision, event.currentTarget),
      },
      verb,
    );
  return h(
    "div",
    { class: "answer", key: "answer" },
    button("Approve", "approve", "primary"),
    button("Deny", "decline", "danger"),
    entry.question.required ? breakGlassButton(id, entry, isOff) : null,
    h("span", { class: "muted small-text" }, entry.error ?? (entry.busy ? BUSY[entry.question.presence] : "")),
  );
}

/** The button for somebody who may approve alone what requires more people. */
function breakGlassButton(id, entry, isOff) {
  return h(
    "button",
    {
      type: "button",
      class: "small",
      "aria-disabled": isOff ? "true" : null,
      "aria-describedby": `question-title-${id}`,
      onclick: (event) => {
        const button = event.currentTarget;
        const reason = isOff ? null : breakGlassReason();
        if (reason) answer(entry, "approve", button, reason);
      },
    },
    "Approve alone, with a reason…",
  );
}

/**
 * The text of a question as the terminal shows it. Lines with text of others begin with a bar or a colon. Where such a line
 * is too long for the window, its rest stays indented, so that it cannot imitate a line of Lockhouse.
 */
function questionText(text) {
  const line = (content) => h("span", { class: /^ {4}[|:] /.test(content) ? "quoted" : null }, content || " ");
  return h("pre", { class: "listing lines", dir: "ltr" }, text.replace(/\n$/, "").split("\n").map(line));
}

function card([id, entry]) {
  const { question } = entry;
  if (entry.activeFrom === null) startInactiveTime(entry);
  const left = (new Date(question.expires) - Date.now()) / 1000;
  const calls = question.calls.map((call) => `${call.server}.${call.name}`);
  const title = calls.length === 1 ? calls[0] : plural(calls.length, "call");
  return h(
    "article",
    { class: "panel question", key: id, tabindex: "-1", "data-item": true, "data-state": entry.end ? "ended" : "pending", "aria-labelledby": `question-title-${id}` },
    h(
      "div",
      { class: "panel-head" },
      h("h2", { id: `question-title-${id}`, class: "clamp" }, untrusted(title)),
      h("span", { class: "deadline muted small-text" }, entry.end ? "ended" : `expires in ${countdown(left)}`),
    ),
    h(
      "p",
      { class: "muted small-text" },
      "Client: ", clientName(question.client), " · run ", runLink(question.execution),
      " · asked ", timeElement(question.asked, time(question.asked)),
    ),
    questionText(question.text),
    h(
      "div",
      { class: "decision" },
      question.diff
        ? [h("h3", null, "What “always” changes in the policy"), diff(question.diff, "Change of the policy")]
        : null,
      may("approve") ? scopeChoice(id, entry) : null,
      answerRow(id, entry),
    ),
  );
}

function render() {
  const entries = [...known];
  const watching = state.approvals?.watching ?? 0;
  const about =
    watching > 0
      ? `Calls for which the policy says “ask”. ${plural(watching, "Lockhouse process", "Lockhouse processes")} will ask here while this page is open.`
      : "Calls for which the policy says “ask”. No Lockhouse process is running now.";
  return [
    viewHead("Approvals", about, notificationButton()),
    entries.length
      ? h("div", { class: "questions", key: "questions" }, entries.map(card))
      : empty("No question is pending", "A question appears here as soon as a running program makes a call that requires approval."),
    may("policy") ? proposalsPanel() : null,
    may("approve") ? registrationForm() : null,
  ];
}

export const approvals = {
  name: "approvals",
  title: "Approvals",
  render,
  /** Whether the view shows a time that passes, and so is drawn every second. */
  isTicking: () => pendingCount() > 0,
  enter() {
    isShown = true;
    guard();
  },
  leave() {
    isShown = false;
    forgetProposals();
    for (const [id, entry] of known) if (entry.end) known.delete(id);
  },
};

// A page that comes to the front may come under a pointer that was about to click something else.
document.addEventListener("visibilitychange", () => document.hidden || guard());
window.addEventListener("focus", guard);
