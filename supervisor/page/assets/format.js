// Numbers, times and sizes as text for people.

const count = new Intl.NumberFormat("en");

export function number(value) {
  return Number.isFinite(value) ? count.format(value) : "–";
}

/** "1 call", "2 calls". */
export function plural(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  let unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

/** A duration in milliseconds: "8.1 ms", "1.25 s", "3 min 5 s", "2 h 10 min". */
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return span(ms / 1000);
}

/** A number of whole seconds: "45 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
export function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/** "4:05", for a countdown. */
export function countdown(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndClock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

/** A time of RFC 3339 in the person's time zone, with the day unless it is today. */
export function time(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return String(text ?? "–");
  const isToday = date.toDateString() === new Date().toDateString();
  return (isToday ? clock : dayAndClock).format(date);
}

/** The beginning of an id, which is enough for the commands. */
export function shortId(id) {
  return String(id ?? "").slice(0, 13);
}
