// Requests to the page's process. Every request carries the key of the session, beside the cookie: cookies are sent to
// every port of a host, the key is not.

const KEY = "session-key";

/** An error answer, or a failure to reach the process (code `unreachable`). The message is for the person. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/**
 * Exchanges the token in the address for a session, and removes it from the address and the history at once.
 * Does nothing if the address has no token.
 */
export async function login() {
  const token = /^#token=([0-9a-f]+)$/i.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  await loginWith(token);
}

/** Exchanges a token for a session. */
export async function loginWith(token) {
  const answer = await request("/api/login", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Lockhouse-Page": "login" },
    body: JSON.stringify({ token }),
  });
  localStorage.setItem(KEY, (await answer.json()).key);
}

export async function get(path, signal) {
  return (await request(path, { headers: sessionHeaders(), signal })).json();
}

export async function post(path, body) {
  const headers = { ...sessionHeaders(), "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

/** Returns the body of the event stream. */
export async function openEvents(signal) {
  return (await request("/api/events", { headers: sessionHeaders(), signal })).body;
}

/** Downloads a file: the browser saves it, and never shows it. */
export async function download(path, fallbackName) {
  const answer = await request(path, { headers: sessionHeaders() });
  const name = /filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1];
  const url = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name || fallbackName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function sessionHeaders() {
  return { "X-Lockhouse-Page": localStorage.getItem(KEY) ?? "" };
}

async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "Lockhouse does not answer. Does `lockhouse page` still run in its terminal?");
  }
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({}));
  throw new ApiError(answer.status, error?.code ?? "failed", error?.message ?? `Lockhouse answered ${answer.status}.`);
}
