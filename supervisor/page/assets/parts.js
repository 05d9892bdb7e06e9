// Parts that several views use.

import { code, h, untrusted, visible } from "./dom.js";

/** A state as a word with a shape and a colour. `tone`: `good`, `warn`, `bad` or `neutral`. */
export function stateLabel(tone, text) {
  return h("span", { class: `state ${tone}` }, text);
}

/** The head of a view: its title and one sentence about it. `actions` are controls at its end. */
export function viewHead(title, about, ...actions) {
  return h(
    "div",
    { class: "view-head", key: "view-head" },
    h("div", null, h("h1", { id: "title", tabindex: "-1" }, title), h("p", null, about)),
    actions.length ? h("div", { class: "row" }, actions) : null,
  );
}

export function empty(title, advice) {
  return h("div", { class: "empty", key: "empty" }, h("strong", null, title), h("span", null, advice));
}

/** A list of terms and values. Rows without a value are left out. */
export function facts(...rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== false);
  return h("dl", { class: "facts" }, shown.map(([term, value]) => [h("dt", null, term), h("dd", null, value)]));
}

/**
 * A table. `columns` are `{label, number, wide}`; `rows` are `{key, cells, attributes}`. On narrow screens each cell shows
 * its column's label. The first cell is the row's heading.
 */
export function table(caption, columns, rows) {
  const kind = (column) => (column.number ? "number" : column.wide ? "wide" : null);
  const cell = (content, index) =>
    index === 0
      ? h("th", { scope: "row", class: kind(columns[0]) }, content)
      : h("td", { "data-label": columns[index].label, class: kind(columns[index]) }, content ? h("div", null, content) : null);
  const columnHead = (column) =>
    h("th", { scope: "col", class: kind(column) }, column.label || h("span", { class: "visually-hidden" }, "Action"));
  return h(
    "div",
    { class: "table-frame", key: `table ${caption}` },
    h(
      "table",
      { class: "stacked" },
      h("caption", { class: "visually-hidden" }, caption),
      h("thead", null, h("tr", null, columns.map(columnHead))),
      h("tbody", null, rows.map((row) => h("tr", { key: row.key, ...row.attributes }, row.cells.map(cell)))),
    ),
  );
}

/** A unified diff. Added and removed lines also begin with `+` and `-`, so that no meaning is in colour alone. */
export function diff(text, label) {
  const tone = (line) => {
    if (/^(---|\+\+\+|@@)/.test(line)) return "place";
    if (line.startsWith("+")) return "added";
    return line.startsWith("-") ? "removed" : null;
  };
  const lines = String(text).replace(/\n$/, "").split("\n");
  return h(
    "pre",
    { class: "diff", tabindex: "0", role: "region", "aria-label": label, dir: "ltr" },
    lines.map((line) => h("span", { class: tone(line) }, line || " ")),
  );
}

/** The name of an AI client, or words for `lockhouse run`. */
export function clientName(client) {
  return client === null || client === undefined ? h("span", { class: "muted" }, "command line") : untrusted(client);
}

/** `server.item`, as programs write it. */
export function callName(server, item) {
  return code(`${server ?? ""}.${item ?? ""}`);
}

export function timeElement(text, shown) {
  return h("time", { datetime: text, class: "nowrap" }, shown);
}

/** A link to the details of a run. */
export function runLink(execution, text) {
  return h("a", { href: `#/runs/${encodeURIComponent(execution)}`, "data-item": true }, text ?? code(execution.slice(0, 13), { class: "id" }));
}

/** The numbered lines of a program. `marked` are numbers of lines to highlight. */
export function programLines(text, marked = new Set()) {
  const lines = visible(text).replace(/\n$/, "").split("\n");
  return h(
    "pre",
    { class: "listing bounded", tabindex: "0", role: "region", "aria-label": "Source of the program", dir: "ltr" },
    h(
      "code",
      { class: "numbered" },
      lines.map((line, index) => [
        h("span", { class: "line-number", "aria-hidden": "true" }, String(index + 1)),
        h("span", { class: marked.has(index + 1) ? "marked" : null }, line || " "),
      ]),
    ),
  );
}
