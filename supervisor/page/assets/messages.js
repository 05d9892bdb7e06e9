// Messages to the person about their actions, announcements for screen readers, and questions that confirm an action.

import { draw, h } from "./dom.js";

const MESSAGES_MAX = 3;
/** Screen readers hear at most one announcement in this time; the newest replaces the others. */
const ANNOUNCEMENT_INTERVAL_MS = 3_000;

let messages = [];
let lastId = 0;

/** Shows a message until the person closes it. `tone`: `good`, `warn` or `bad`. */
export function tell(tone, text) {
  lastId += 1;
  messages = [...messages, { id: lastId, tone, text }].slice(-MESSAGES_MAX);
  drawMessages();
}

/** Shows the error of an action. */
export function tellError(error) {
  tell("bad", error.message);
}

function drawMessages() {
  const close = (id) => {
    messages = messages.filter((message) => message.id !== id);
    drawMessages();
  };
  draw(
    document.getElementById("messages"),
    messages.map(({ id, tone, text }) =>
      h(
        "div",
        { key: id, class: `notice ${tone}`, role: tone === "bad" ? "alert" : "status" },
        h("span", null, text),
        h("button", { type: "button", class: "small", onclick: () => close(id) }, "Close"),
      ),
    ),
  );
}

let announcement = null;
let announceTimer = null;

/** Reads a sentence to users of screen readers, without moving the focus. */
export function announce(text) {
  announcement = text;
  if (announceTimer !== null) return;
  const speak = () => {
    announceTimer = null;
    if (announcement === null) return;
    document.getElementById("announcements").textContent = announcement;
    announcement = null;
    announceTimer = setTimeout(speak, ANNOUNCEMENT_INTERVAL_MS);
  };
  speak();
}

/** Shows a dialog and returns it. The dialog takes the focus, and returns it when it closes. */
export function showDialog(title, ...contents) {
  const dialog = document.getElementById("dialog");
  const heading = h("h2", { id: "dialog-title" }, title);
  dialog.replaceChildren(h("div", { class: "contents" }, heading, ...contents));
  dialog.showModal();
  return dialog;
}

/** Asks the person to confirm an action. Returns a promise of whether they did. */
export function confirmAction(title, explanation, verb) {
  return new Promise((resolve) => {
    const dialog = document.getElementById("dialog");
    const answer = (isConfirmed) => () => {
      resolve(isConfirmed);
      dialog.close();
    };
    dialog.addEventListener("close", () => resolve(false), { once: true });
    const cancel = h("button", { type: "button", autofocus: true, onclick: answer(false) }, "Cancel");
    const confirm = h("button", { type: "button", class: "danger", onclick: answer(true) }, verb);
    showDialog(title, h("p", null, explanation), h("div", { class: "row" }, cancel, confirm));
  });
}
