// What the page knows: the sections of the stream by name, and what the person does with the page. A change draws the
// current view again, at most once for each frame.

export const state = {
  /** `null` until the stream has sent the section. */
  hello: null,
  processes: null,
  runs: null,
  sessions: null,
  approvals: null,
  denials: null,
  servers: null,
  results: null,
  savings: null,
  /** `connecting`, `live`, `lost` or `no_session`. */
  link: "connecting",
};

let drawView = () => {};
let isScheduled = false;

export function setDrawView(draw) {
  drawView = draw;
}

/** Draws the current view before the next frame. */
export function redraw() {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    drawView();
  });
}

/** Whether the person has a right beyond what concerns their own AI client: "approve", "policy", "audit" or "operate". */
export function may(right) {
  return state.hello?.may?.includes(right) === true;
}

/** Reads or writes a preference of the person in this browser. Storage may be unavailable. */
export function preference(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    // The preference lasts as long as the page then.
  }
  return value ?? null;
}
