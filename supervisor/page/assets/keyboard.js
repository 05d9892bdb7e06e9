// Operation by keyboard beyond the Tab key: moves between views and between items, and single-key shortcuts.

import { h } from "./dom.js";
import { showDialog } from "./messages.js";
import { preference } from "./state.js";

const SHORTCUTS = [
  [["1", "…", "9"], "show a view, in the order of the list"],
  [["j", "k"], "go to the next or the previous item of the view"],
  [["/"], "go to the filter of the audit log"],
  [["?"], "show this list"],
  [["Tab"], "go to the next control"],
  [["↑", "↓", "←", "→"], "go to another view, with the focus in the list of views"],
  [["Esc"], "close this list, or leave a field"],
];

/** Whether single keys act. People who dictate, or who press keys by accident, can turn them off. */
function areShortcutsOn() {
  return preference("shortcuts") !== "off";
}

export function showHelp() {
  const close = () => document.getElementById("dialog").close();
  const keys = (names) => names.map((name) => (name === "…" ? " … " : [h("kbd", null, name), " "]));
  const toggle = (event) => preference("shortcuts", event.currentTarget.checked ? "on" : "off");
  showDialog(
    "Keyboard shortcuts",
    h("dl", { class: "facts" }, SHORTCUTS.map(([names, meaning]) => [h("dt", null, keys(names)), h("dd", null, meaning)])),
    h("p", { class: "muted small-text" }, "Approving and denying have no shortcut: go to the button, and press Enter."),
    h("label", { class: "row" }, h("input", { type: "checkbox", checked: areShortcutsOn(), onchange: toggle }), "Single keys are shortcuts"),
    h("div", { class: "row" }, h("button", { type: "button", onclick: close }, "Close")),
  );
}

/** Moves the focus from item to item of the view. */
function moveItem(step) {
  const items = [...document.querySelectorAll("main [data-item]")].filter((item) => item.offsetParent !== null);
  if (!items.length) return;
  const current = items.findIndex((item) => item === document.activeElement || item.contains(document.activeElement));
  const next = current === -1 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, current + step));
  items[next].focus();
}

/** One Tab stop for the list of views: the arrow keys move inside it. */
export function moveInViews(event) {
  const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  const step = steps[event.key];
  if (step === undefined) return;
  const links = [...document.querySelectorAll("#views a")];
  const next = Math.min(links.length - 1, Math.max(0, links.indexOf(document.activeElement) + step));
  event.preventDefault();
  links[next].focus();
}

/** Starts the shortcuts. `show(index)` shows a view. */
export function startShortcuts(show) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.target.matches?.("input, select") && event.target.blur();
    const isTyping = event.target.closest?.("input:not([type=radio], [type=checkbox]), select, textarea");
    if (event.ctrlKey || event.altKey || event.metaKey || isTyping || !areShortcutsOn()) return;
    if (document.getElementById("dialog").open) return;
    if (/^[1-9]$/.test(event.key)) show(Number(event.key) - 1);
    else if (event.key === "j") moveItem(1);
    else if (event.key === "k") moveItem(-1);
    else if (event.key === "?") showHelp();
    else if (event.key === "/") document.querySelector('[role="search"] input')?.focus();
    else return;
    event.preventDefault();
  });
}
