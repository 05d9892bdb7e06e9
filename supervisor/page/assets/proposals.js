// The policies that people propose for the engine of the system: shows what one changes, and accepts it.

import { post } from "./api.js";
import { code, h, untrusted } from "./dom.js";
import { plural } from "./format.js";
import { sign } from "./keys.js";
import { announce, tell, tellError } from "./messages.js";
import { table } from "./parts.js";
import { redraw } from "./state.js";

const WAITING = { none: "Accepting…", password: "Waiting for your password…", key: "Waiting for your key…" };

/** The proposals that were shown: `null` until the person asks for them. */
let shown = null;
let busyWith = null;

/** Forgets what was shown, because it may change while the person looks at something else. */
export function forgetProposals() {
  shown = null;
}

async function load() {
  try {
    shown = (await post("/api/policy/proposals", {})).proposals;
    announce(shown.length ? `${plural(shown.length, "proposed policy", "proposed policies")}.` : "No policy is proposed.");
  } catch (error) {
    tellError(error);
  }
  redraw();
}

async function accept({ supervisor, digest, presence }) {
  if (busyWith) return;
  busyWith = digest;
  redraw();
  try {
    const proof = presence === "key" ? await sign("/api/policy/challenge", { supervisor, digest }) : null;
    await post("/api/policy/accept", { supervisor, digest, proof });
    tell("good", "The policy is accepted and in force.");
    shown = null;
  } catch (error) {
    tellError(error);
  }
  busyWith = null;
  redraw();
}

function changesTable(caption, changes) {
  const columns = [{ label: "Table" }, { label: "Key", wide: true }, { label: "Approved" }, { label: "Proposed" }];
  const value = (text) => (text === null ? "–" : untrusted(text));
  const row = ({ table: name, entry, approved, proposed }, index) => ({
    key: `${index}`,
    cells: [untrusted(name), untrusted(entry), value(approved), value(proposed)],
  });
  return changes.length ? [h("h3", { key: caption }, caption), table(caption, columns, changes.map(row))] : null;
}

function proposalPanel(proposal) {
  const { supervisor, digest, changes, left_out: leftOut, presence } = proposal;
  return h(
    "section",
    { key: `${supervisor} ${digest}`, class: "panel" },
    h("p", { class: "small-text" }, "Digest ", code(digest.slice(0, 16))),
    changes.length ? null : h("p", null, "It is equivalent to the approved policy."),
    changesTable("It may permit more", changes.filter((change) => change.widens)),
    changesTable("It permits less", changes.filter((change) => !change.widens)),
    leftOut ? h("p", { class: "notice warn" }, `${plural(leftOut, "difference")} more that are not shown here.`) : null,
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", class: "primary", "aria-disabled": busyWith ? "true" : null, onclick: () => accept(proposal) }, "Accept this policy"),
      h("span", { class: "muted small-text" }, busyWith === digest ? WAITING[presence] : ""),
    ),
  );
}

/** The part of the approvals that shows proposed policies. */
export function proposalsPanel() {
  return h(
    "section",
    { key: "proposals", class: "panel" },
    h("div", { class: "panel-head" }, h("h2", null, "Proposed policy"), h("button", { type: "button", class: "small", onclick: load }, "Show")),
    h("p", { class: "muted" }, "A policy that “lockhouse policy propose” has sent to the engine of the system. It restricts already; what it permits takes effect when it is accepted."),
    shown === null ? null : shown.length ? shown.map(proposalPanel) : h("p", { key: "none" }, "No policy is proposed."),
  );
}
