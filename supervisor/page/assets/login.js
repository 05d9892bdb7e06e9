// What the page shows without a session: how to get a new link, and a field for a link or a token.

import { loginWith } from "./api.js";
import { code, h } from "./dom.js";
import { redraw } from "./state.js";

let failure = null;
/** Whether people log in at an authorization server; `null` until it is known. */
let hasOauth = null;

async function askForWays() {
  hasOauth = false;
  try {
    hasOauth = (await (await fetch("/api/login/ways")).json()).oauth === true;
  } catch {
    // The field for a token remains.
  }
  redraw();
}

async function submit(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const entered = form.elements.token.value.trim();
  form.reset();
  try {
    // A whole link ends with its token.
    await loginWith(entered.replace(/^.*#token=/, ""));
    location.reload();
  } catch (error) {
    failure = error.message;
    redraw();
  }
}

export function loginView() {
  if (hasOauth === null) askForWays();
  return h(
    "div",
    { class: "gate", key: "gate" },
    h(
      "div",
      { class: "panel" },
      h("h1", { id: "title", tabindex: "-1" }, "This page needs a new link"),
      h("p", null, "A link opens the page once, and a session lasts for 12 hours."),
      h("p", null, "Press Enter in the terminal where ", code("lockhouse page"), " runs, or start it again, and open the link that it prints."),
      h(
        "form",
        { class: "row", onsubmit: submit },
        h(
          "label",
          { class: "field grow" },
          "Link, or your access token of a service",
          h("input", { name: "token", type: "password", autocomplete: "off", required: true, maxlength: "8192" }),
        ),
        h("button", { type: "submit", class: "primary" }, "Open"),
      ),
      hasOauth ? h("p", { key: "oauth" }, h("a", { href: "/oauth/begin" }, "Log in at your organization")) : null,
      failure ? h("p", { class: "notice bad", role: "alert" }, failure) : null,
    ),
  );
}
