// Values, answers and files that runs kept, for download.

import { download } from "./api.js";
import { h, untrusted } from "./dom.js";
import { bytes, time } from "./format.js";
import { tell, tellError } from "./messages.js";
import { clientName, empty, runLink, table, timeElement, viewHead } from "./parts.js";
import { state } from "./state.js";

const COLUMNS = [
  { label: "Name" },
  { label: "Kind" },
  { label: "Client", wide: true },
  { label: "Run" },
  { label: "Size", number: true },
  { label: "Stored" },
  { label: "Expires" },
  { label: "" },
];

async function save(result, name) {
  try {
    await download(`/api/results/${encodeURIComponent(result.id)}`, name);
    tell("good", "The download has begun.");
  } catch (error) {
    tellError(error);
  }
}

export function resultTable(results) {
  const row = (result) => {
    const name = result.name ?? `${result.kind} ${result.id.slice(0, 8)}`;
    return {
      key: result.id,
      cells: [
        untrusted(name),
        result.kind,
        clientName(result.client),
        result.execution ? runLink(result.execution) : "",
        bytes(result.bytes),
        timeElement(result.stored, time(result.stored)),
        timeElement(result.expires, time(result.expires)),
        h("button", { type: "button", class: "small", "data-item": true, onclick: () => save(result, name), "aria-label": `Download ${name}` }, "Download"),
      ],
    };
  };
  return table("Kept results", COLUMNS, results.map(row));
}

function render() {
  const results = state.results?.results ?? [];
  return [
    viewHead("Kept results", "Values, answers and files that runs kept because they were too long for the model. They are removed when they expire."),
    results.length
      ? h("section", { class: "panel flush", key: "results", "data-steady": true }, resultTable(results))
      : empty("Nothing is kept", "Long values, answers of background runs and files of programs appear here."),
  ];
}

export const results = { name: "results", title: "Kept results", rights: ["audit"], render };
