// Writes locale_cases.tsv: expressions with the values that Node.js gives, as JSON. Run it with
//   LANG=en_US.UTF-8 TZ=UTC node make_locale_cases.mjs
import { writeFileSync } from "node:fs";

const expressions = [];
const add = (...texts) => expressions.push(...texts);
const json = (value) => JSON.stringify(value).replace(/"(\w+)":/g, "$1: ").replaceAll(",", ", ");
const call = (value, method, locale, options) => add(`${value}.${method}(${JSON.stringify(locale)}, ${json(options)})`);

// Numbers.
for (const value of ["(0)", "(-0)", "(1234567)", "(1234.5678)", "(-1234.5)", "(1e21)", "(1e-7)", "NaN", "Infinity", "123456789012345678901234567890n", "(-5n)"]) {
  add(`${value}.toLocaleString()`, `${value}.toLocaleString("en-US")`);
}
for (const options of [
  { maximumFractionDigits: 2 }, { minimumFractionDigits: 2 }, { maximumSignificantDigits: 2 }, { minimumIntegerDigits: 4 },
  { style: "percent" }, { style: "percent", maximumFractionDigits: 1 }, { useGrouping: false }, { signDisplay: "exceptZero" }, { signDisplay: "never" },
  { style: "currency", currency: "USD" }, { style: "currency", currency: "JPY" }, { style: "currency", currency: "KWD" },
  { style: "currency", currency: "CHF" }, { style: "currency", currency: "usd", currencyDisplay: "code" }, { style: "currency", currency: "EUR", currencyDisplay: "name" },
  { style: "currency", currency: "USD", currencySign: "accounting" }, { style: "currency", currency: "CAD", currencyDisplay: "narrowSymbol" },
  { style: "currency", currency: "USD", maximumFractionDigits: 0 }, { notation: "compact" }, { notation: "compact", compactDisplay: "long" },
  { notation: "compact", style: "currency", currency: "USD" }, { notation: "scientific" }, { notation: "engineering" },
  { style: "unit", unit: "kilometer" }, { style: "unit", unit: "megabyte", unitDisplay: "long" }, { style: "unit", unit: "kilometer-per-hour", unitDisplay: "narrow" },
]) {
  for (const value of ["(1.005)", "(-1234567.891)", "(0)"]) call(value, "toLocaleString", "en-US", options);
}
for (const value of ["(999.9)", "(999500)", "(15500)", "(1e15)", "(0.00123)"]) call(value, "toLocaleString", "en-US", { notation: "compact" });
for (const mode of ["ceil", "floor", "expand", "trunc", "halfEven", "halfTrunc"]) call("(-2.5)", "toLocaleString", "en-US", { maximumFractionDigits: 0, roundingMode: mode });
for (const locale of ["en-GB", "en-CA", "en"]) {
  for (const currency of ["USD", "CAD", "GBP", "JPY"]) call("(1234.5)", "toLocaleString", locale, { style: "currency", currency });
}
add(
  `new Intl.NumberFormat().format("123456789012345678901234567890.12345")`,
  `[1, 2].map(new Intl.NumberFormat("en-US", { style: "percent" }).format)`,
  `Intl.NumberFormat("en-US").format(1234)`,
  `new Intl.NumberFormat("en-US", { style: "currency", currency: "CHF" }).formatToParts(-1234.5)`,
  `new Intl.NumberFormat("en-US", { notation: "scientific" }).formatToParts(-0.0001234)`,
  `new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 }).resolvedOptions().maximumFractionDigits`,
  `[1234.5, null, undefined, "a", 5n].toLocaleString()`,
  `[1, 2].toLocaleString("en-US", { style: "currency", currency: "USD" })`,
  `new Uint16Array([1000, 2]).toLocaleString("en-US")`,
);

// Dates and times.
const INSTANTS = ["new Date(Date.UTC(2026, 10, 28, 5, 10, 0, 123))", "new Date(Date.UTC(2026, 2, 5, 14, 6, 7))"];
const METHODS = ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"];
for (const date of INSTANTS) {
  for (const method of METHODS) {
    add(`${date}.${method}()`);
    for (const locale of ["en-US", "en-GB", "en-CA", "sv-SE"]) add(`${date}.${method}(${JSON.stringify(locale)})`);
    call(date, method, "en-US", { timeZone: "America/New_York" });
    call(date, method, "sv-SE", { timeZone: "Europe/Stockholm" });
  }
  for (const length of ["full", "long", "medium", "short"]) {
    call(date, "toLocaleDateString", "en-US", { dateStyle: length });
    call(date, "toLocaleDateString", "en-GB", { dateStyle: length });
    call(date, "toLocaleString", "en-US", { dateStyle: length, timeStyle: length });
    call(date, "toLocaleTimeString", "en-US", { timeStyle: length, timeZone: "America/Los_Angeles" });
  }
  for (const options of [
    { year: "numeric", month: "long", day: "numeric" }, { year: "numeric", month: "short", day: "2-digit" }, { weekday: "long", year: "numeric", month: "long", day: "numeric" },
    { weekday: "short", month: "short", day: "numeric" }, { month: "long", year: "numeric" }, { month: "2-digit", day: "2-digit", year: "numeric" }, { weekday: "long" },
    { month: "long" }, { year: "2-digit", month: "numeric", day: "numeric" }, { year: "numeric", month: "2-digit" },
  ]) {
    call(date, "toLocaleDateString", "en-US", options);
    call(date, "toLocaleDateString", "en-GB", options);
    call(date, "toLocaleDateString", "en-CA", options);
  }
  for (const options of [
    { hour: "numeric", minute: "2-digit" }, { hour: "2-digit", minute: "2-digit" }, { hour: "numeric" }, { hour12: false }, { hourCycle: "h23" },
    { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }, { hour: "numeric", minute: "2-digit", timeZone: "Asia/Kolkata", timeZoneName: "short" },
    { hour: "numeric", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 }, { timeZone: "europe/london", timeZoneName: "short" },
    { timeZone: "America/Sao_Paulo", timeZoneName: "longOffset" },
  ]) call(date, "toLocaleTimeString", "en-US", options);
  call(date, "toLocaleString", "en-US", { month: "long", day: "numeric", year: "numeric", hour: "numeric", minute: "2-digit" });
  call(date, "toLocaleString", "en-US", { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZone: "UTC", timeZoneName: "short" });
  call(date, "toLocaleString", "sv-SE", { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" });
}
// Edges of summer time, other offsets, and distant years.
for (const [milliseconds, zone] of [
  [Date.UTC(2026, 2, 8, 6, 59, 59), "America/New_York"], [Date.UTC(2026, 2, 8, 7), "America/New_York"], [Date.UTC(2025, 10, 2, 5, 30), "America/New_York"],
  [Date.UTC(2025, 10, 2, 6, 30), "America/New_York"], [Date.UTC(2025, 9, 26, 0, 59), "Europe/Prague"], [Date.UTC(2025, 9, 26, 1), "Europe/Prague"],
  [Date.UTC(2025, 3, 5, 16), "Australia/Lord_Howe"], [Date.UTC(2025, 0, 1), "Asia/Kathmandu"], [Date.UTC(2011, 11, 30, 9, 59), "Pacific/Apia"],
  [Date.UTC(2011, 11, 30, 10), "Pacific/Apia"], [-1, "Europe/London"], [Date.UTC(1943, 6, 1), "Europe/Berlin"], [Date.UTC(1850, 0, 1), "America/New_York"],
  [-1e14, "UTC"], [8.64e15, "UTC"], [Date.UTC(12026, 6, 1, 12), "Europe/Prague"], [Date.UTC(1999, 0, 1), "America/Sao_Paulo"],
]) {
  call(`new Date(${milliseconds})`, "toLocaleString", "en-US", { timeZone: zone });
  call(`new Date(${milliseconds})`, "toLocaleString", "sv-SE", { timeZone: zone });
}
add(
  `new Date(NaN).toLocaleString()`,
  `new Intl.DateTimeFormat("en-US", { timeZone: "UTC" }).format(0)`,
  `new Intl.DateTimeFormat().resolvedOptions().timeZone`,
  `new Intl.DateTimeFormat("en-US", { timeZone: "europe/prague" }).resolvedOptions().timeZone`,
  `Intl.DateTimeFormat("en-US", { hour: "numeric" }).resolvedOptions().hourCycle`,
  `Object.fromEntries(new Intl.DateTimeFormat("en-CA", { timeZone: "Europe/Prague", year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(86399999).map((part) => [part.type, part.value]))`,
  `[0, 86400000].map(new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric" }).format)`,
  `new Intl.DateTimeFormat(["en-US", "de"]).resolvedOptions().locale`,
);

// The order of texts.
const WORDS = `["b", "a10", "A", "á", "a9", "_", "B", "résumé", "Resume", "resume", "10", "9", "Z", "ä", "co-op", "coop", ""]`;
for (const options of ["undefined, undefined", `"en-US"`, `"en", { numeric: true }`, `"en", { sensitivity: "base" }`, `undefined, { sensitivity: "accent", numeric: true }`, `"en", { caseFirst: "upper" }`, `"en", { ignorePunctuation: true }`]) {
  add(`${WORDS}.sort((a, b) => a.localeCompare(b, ${options}))`);
}
for (const [left, right] of [["a", "B"], ["a", "á"], ["a", "A"], ["ß", "ss"], ["2", "10"]]) {
  for (const sensitivity of ["base", "accent", "case", "variant"]) add(`${JSON.stringify(left)}.localeCompare(${JSON.stringify(right)}, "en", { sensitivity: "${sensitivity}" })`);
}
add(`${WORDS}.sort(new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare)`, `"İi".toLocaleLowerCase("en-US")`, `"straße".toLocaleUpperCase()`);

const { node, icu, cldr, tz } = process.versions;
const lines = [...new Set(expressions)].map((text) => `${text}\t${JSON.stringify(eval(text))}`);
writeFileSync(new URL("locale_cases.tsv", import.meta.url), `# Node.js ${node}, ICU ${icu}, CLDR ${cldr}, time zones ${tz}; written by make_locale_cases.mjs\n${lines.join("\n")}\n`);
