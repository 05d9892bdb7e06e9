// Calls that the policy did not permit, and changes of the policy that would permit them.

import { post } from "./api.js";
import { code, h, untrusted } from "./dom.js";
import { plural, time } from "./format.js";
import { announce, tellError } from "./messages.js";
import { callName, clientName, diff, empty, runLink, stateLabel, timeElement, viewHead } from "./parts.js";
import { may, redraw, state } from "./state.js";
import { steadyOrder } from "./steady_order.js";

/** The change that the person looks at for a denial, by the denial's key: `{effect, preview, isBusy, done, last}`. */
const proposals = new Map();

const keyOf = (denial) => [denial.client, denial.server, denial.kind, denial.item, denial.rule, denial.decision].join("\u0000");

const EFFECTS = { ask: "Ask me each time", allow: "Allow always" };

async function preview(key, denial, effect) {
  const proposal = { effect, preview: null, isBusy: true, done: null, last: denial.last };
  proposals.set(key, proposal);
  redraw();
  try {
    proposal.preview = await post("/api/policy/preview", { server: denial.server, tool: denial.item, effect });
    announce("The suggested change is shown.");
  } catch (error) {
    proposals.delete(key);
    tellError(error);
  }
  proposal.isBusy = false;
  redraw();
}

async function apply(key, denial) {
  const proposal = proposals.get(key);
  if (proposal.isBusy) return;
  proposal.isBusy = true;
  redraw();
  try {
    const { digest } = proposal.preview;
    const { reloads } = await post("/api/policy/apply", { server: denial.server, tool: denial.item, effect: proposal.effect, digest });
    const refused = reloads.filter((reload) => !reload.accepted);
    const loaded = `The policy was changed. ${plural(reloads.length - refused.length, "process", "processes")} loaded it.`;
    proposal.done = [loaded, ...refused.map((reload) => `Process ${reload.supervisor} did not: ${reload.message}`)].join(" ");
    announce(proposal.done);
  } catch (error) {
    // What was shown is no longer true: the person looks at the new change before they apply it.
    if (error.code === "stale") await preview(key, denial, proposal.effect);
    tellError(error);
  }
  proposal.isBusy = false;
  redraw();
}

function suggestion(key, denial) {
  // A later denial of the same call is a new one.
  if (proposals.get(key)?.done && proposals.get(key).last !== denial.last) proposals.delete(key);
  const proposal = proposals.get(key);
  if (proposal?.done) return h("p", { class: "notice good", role: "status" }, proposal.done);
  const choose = (effect) =>
    h(
      "button",
      { type: "button", class: "small", "aria-pressed": String(proposal?.effect === effect), onclick: () => preview(key, denial, effect) },
      `${EFFECTS[effect] ?? effect}…`,
    );
  const choices = h(
    "div",
    { class: "row" },
    h("span", { class: "muted small-text" }, "Suggested change of the policy:"),
    denial.suggests.map(choose),
  );
  if (!proposal) return choices;
  if (!proposal.preview) return [choices, h("p", { class: "muted" }, "Loading the change…")];
  return [choices, proposedChange(key, denial, proposal)];
}

function proposedChange(key, denial, proposal) {
  const { file, diff: text, changed, in_effect: isInEffect, warnings, notes } = proposal.preview;
  const close = () => {
    proposals.delete(key);
    redraw();
  };
  return h(
    "div",
    { class: "panel", key: "change" },
    h("p", { class: "small-text" }, "Change of ", code(file)),
    changed ? diff(text, "Suggested change of the policy") : h("p", null, "The policy has this entry already."),
    isInEffect ? null : h("p", { class: "notice warn" }, "Another line of the policy still decides otherwise for some calls."),
    [...(warnings ?? []), ...(notes ?? [])].map((text) => h("p", { class: "muted small-text" }, text)),
    h(
      "div",
      { class: "row" },
      changed
        ? h("button", { type: "button", class: "primary", "aria-disabled": proposal.isBusy ? "true" : null, onclick: () => apply(key, denial) }, "Apply this change")
        : null,
      h("button", { type: "button", onclick: close }, changed ? "Cancel" : "Close"),
    ),
  );
}

function card(denial) {
  const key = keyOf(denial);
  const times = denial.count === 1 ? time(denial.last) : `${plural(denial.count, "time")}, last ${time(denial.last)}`;
  return h(
    "article",
    { class: "panel", key, tabindex: "-1", "data-item": true },
    h(
      "div",
      { class: "panel-head" },
      h("h2", null, callName(denial.server, denial.item), denial.kind === "tool" ? null : h("span", { class: "muted" }, ` (${denial.kind})`)),
      denial.decision === "ask" ? stateLabel("warn", "not approved") : stateLabel("bad", "denied"),
    ),
    h("p", null, untrusted(denial.reason)),
    h(
      "p",
      { class: "muted small-text" },
      clientName(denial.client), " · ", timeElement(denial.last, times), " · run ", runLink(denial.execution),
      denial.line ? `, line ${denial.line}` : null,
      denial.rule ? [" · rule ", code(denial.rule)] : null,
    ),
    may("policy") && denial.suggests.length ? suggestion(key, denial) : null,
  );
}

const order = steadyOrder();

function render() {
  const denials = order(state.denials?.denials ?? [], keyOf);
  return [
    viewHead("Denials", "Calls that the policy did not permit. A change of the policy is shown as a diff before it is applied."),
    denials.length
      ? h("div", { class: "questions", key: "denials", "data-steady": true }, denials.map(card))
      : empty("No call was denied", "A call that the policy does not permit appears here with the rule that decided."),
  ];
}

export const denials = { name: "denials", title: "Denials", render };
