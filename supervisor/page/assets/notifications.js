// Desktop notifications of new questions. The person enables them with a button; the browser then asks once.

import { h, visible } from "./dom.js";
import { preference, redraw } from "./state.js";

const isSupported = "Notification" in window;

function isEnabled() {
  return isSupported && Notification.permission === "granted" && preference("notifications") === "on";
}

async function toggle() {
  const isWanted = !isEnabled();
  if (isWanted && Notification.permission !== "granted") await Notification.requestPermission();
  preference("notifications", isWanted ? "on" : "off");
  redraw();
}

/** The button that enables and disables notifications. */
export function notificationButton() {
  if (!isSupported) return null;
  if (Notification.permission === "denied") {
    return h("span", { class: "muted small-text" }, "Notifications are blocked in this browser's settings");
  }
  return h(
    "button",
    { type: "button", "aria-pressed": String(isEnabled()), onclick: toggle },
    isEnabled() ? "Notifications: on" : "Enable notifications",
  );
}

/** Notifies the person of a question, unless they are looking at it. */
export function notifyQuestion(question, isViewShown) {
  if (!isEnabled() || (isViewShown && document.hasFocus())) return;
  const [first] = question.calls;
  const subject = question.calls.length === 1 ? `${first.server}.${first.name}` : `${question.calls.length} calls`;
  const notification = new Notification("Lockhouse: a call requires approval", {
    body: visible(`${question.client ?? "A program"} asks to call ${subject}`.slice(0, 200)),
    // A second tab replaces the notification of the first one.
    tag: `${question.supervisor}-${question.id}`,
  });
  notification.onclick = () => {
    window.focus();
    location.hash = "#/approvals";
    notification.close();
  };
}
