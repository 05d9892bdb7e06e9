// Bytes and tokens that code kept out of the models' contexts.

import { h, untrusted } from "./dom.js";
import { bytes, duration, number } from "./format.js";
import { empty, table, viewHead } from "./parts.js";
import { state } from "./state.js";

const COLUMNS = [
  { label: "Day" },
  { label: "Client", wide: true },
  { label: "Runs", number: true },
  { label: "Calls", number: true },
  { label: "CPU time", number: true },
  { label: "Results for code", number: true },
  { label: "Answers for the model", number: true },
  { label: "Kept out", number: true },
  { label: "Tokens kept out", number: true },
];

export function tokensOf(day) {
  return day.clients.reduce((sum, client) => sum + client.kept_out_tokens, 0);
}

const DAY_MS = 86_400_000;
const CHART_DAYS = 30;

/** The latest days, oldest first, each with its tokens; days without runs have none. */
function chartDays(days) {
  const tokens = new Map(days.map((day) => [day.day, tokensOf(day)]));
  const date = (index) => new Date(Date.now() - (CHART_DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10);
  return Array.from({ length: CHART_DAYS }, (_, index) => ({ day: date(index), tokens: tokens.get(date(index)) ?? 0 }));
}

function chart(days) {
  const bars = chartDays(days);
  const most = Math.max(1, ...bars.map((bar) => bar.tokens));
  const bar = ({ day, tokens }) =>
    h(
      "div",
      { class: "day", key: day, title: `${day}: ${number(tokens)} tokens` },
      h("div", { class: "part", vars: { "--height": `${(tokens / most) * 100}%` } }),
    );
  return h(
    "figure",
    { class: "panel", key: "chart" },
    h("div", { class: "panel-head" }, h("h2", null, "Tokens kept out per day"), h("span", { class: "muted small-text" }, `highest: ${number(most)}`)),
    h("div", { class: "bars", role: "img", "aria-label": `Bar chart of ${CHART_DAYS} days. The table below has the same data.` }, bars.map(bar)),
    h("div", { class: "row apart muted small-text" }, h("span", null, bars[0].day), h("span", null, "today")),
  );
}

function clientCell(client) {
  if (client.others) return h("span", { class: "muted" }, "other clients");
  return client.client === null ? h("span", { class: "muted" }, "command line") : untrusted(client.client);
}

function rows(days) {
  return days.flatMap((day) =>
    day.clients.map((client) => ({
      key: `${day.day} ${client.others ? "" : client.client}`,
      cells: [
        h("time", { datetime: day.day, class: "nowrap" }, day.day),
        clientCell(client),
        number(client.runs),
        number(client.calls),
        duration(client.cpu_ms),
        bytes(client.result_bytes),
        client.answer_bytes === null ? "–" : bytes(client.answer_bytes),
        bytes(client.kept_out_bytes),
        number(client.kept_out_tokens),
      ],
    })),
  );
}

function render() {
  const section = state.savings;
  const days = section?.days ?? [];
  if (!days.length) {
    return [viewHead("Savings", ABOUT), empty("No run with calls yet", "The figures appear after the first program that calls a tool.")];
  }
  const definitions = section.definitions_bytes;
  const perToken = section.bytes_per_token;
  return [
    viewHead("Savings", ABOUT),
    chart(days),
    h("section", { class: "panel flush", key: "table" }, h("div", { class: "panel-head" }, h("h2", null, "By day and client")), table("Savings by day and client", COLUMNS, rows(days))),
    h(
      "p",
      { class: "muted small-text", key: "method" },
      `Kept out: the results of calls by code, without the answers that the model received. One token is counted for ${perToken} bytes.`,
      definitions
        ? ` In addition, a model would load ${bytes(definitions)} of tool definitions (${number(Math.round(definitions / perToken))} tokens) at the start of each conversation without Lockhouse.`
        : "",
    ),
  ];
}

const ABOUT = "What programs read from tools and what the models did not have to read.";

export const savings = { name: "savings", title: "Savings", render };
