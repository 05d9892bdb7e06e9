// The live stream of sections. `EventSource` cannot send the session's key, so the stream is read with `fetch`. A browser
// opens six connections to one address, so the tabs of a browser share one stream: the tab that holds a lock reads it
// and passes everything on.

import { openEvents } from "./api.js";

const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 10_000;
/** The process sends a comment every 15 s. A stream that is silent for longer than this is dead. */
const SILENCE_MAX_MS = 45_000;
const SHARED_NAME = "lockhouse-events";

/**
 * Follows the stream. Calls `onEvent(name, data)` for each event, and `onLink(state, seconds)` with the state `live`,
 * `lost` (with the seconds until the next attempt) or `no_session` (when a new link is needed).
 */
export function follow({ onEvent, onLink }) {
  const channel = new BroadcastChannel(SHARED_NAME);
  const latest = new Map();
  let link = null;
  let isReader = false;

  const take = (message) => {
    if (message.link) onLink(...message.link);
    else if (message.event) onEvent(...message.event);
  };
  const share = (message) => {
    if (message.link) link = message.link;
    else latest.set(message.event[0], message.event[1]);
    channel.postMessage(message);
    take(message);
  };
  channel.onmessage = ({ data: message }) => {
    if (!message.isNew) return take(message);
    if (!isReader) return;
    for (const event of latest) channel.postMessage({ event });
    if (link) channel.postMessage({ link });
  };
  const read = async () => {
    isReader = true;
    await readUntilNoSession((...event) => share({ event }), (...state) => share({ link: state }));
    isReader = false;
  };
  channel.postMessage({ isNew: true });
  navigator.locks.request(SHARED_NAME, read);
}

/** Reads the stream, and connects again after each end, until the session has ended. */
async function readUntilNoSession(onEvent, onLink) {
  let delay = RETRY_FIRST_MS;
  for (;;) {
    try {
      await readOnce((name, data) => {
        if (name === "hello") {
          delay = RETRY_FIRST_MS;
          onLink("live");
        }
        onEvent(name, data);
      });
    } catch (error) {
      if (error.status === 401) return onLink("no_session");
    }
    onLink("lost", delay / 1000);
    await new Promise((resolve) => setTimeout(resolve, delay));
    delay = Math.min(delay * 2, RETRY_MAX_MS);
  }
}

async function readOnce(onEvent) {
  const abort = new AbortController();
  const reader = (await openEvents(abort.signal)).pipeThrough(new TextDecoderStream()).getReader();
  let watchdog;
  let buffer = "";
  try {
    for (;;) {
      watchdog = setTimeout(() => abort.abort(), SILENCE_MAX_MS);
      const { value, done } = await reader.read();
      clearTimeout(watchdog);
      if (done) return;
      const blocks = (buffer + value).split("\n\n");
      buffer = blocks.pop();
      for (const block of blocks) dispatch(block, onEvent);
    }
  } finally {
    clearTimeout(watchdog);
    abort.abort();
  }
}

function dispatch(block, onEvent) {
  const field = (name) => block.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = field("data");
  if (data !== undefined) onEvent(field("event") ?? "message", JSON.parse(data));
}
