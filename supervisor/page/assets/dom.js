// Builds and updates the DOM. Text enters the document only as text nodes and attribute values, never as markup.

const HANDLERS = ["onclick", "onchange", "oninput", "onsubmit", "onkeydown"];
const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "rect", "line", "path", "g", "text", "title"]);

// Characters that are invisible or that change the direction or order of text: control characters, soft hyphen,
// zero-width characters, marks and overrides of writing direction, separators of lines, tags and variation selectors.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Returns `text` with every invisible character replaced by its escape, such as `\u202e`. */
export function visible(text) {
  return String(text ?? "").replace(INVISIBLE, (character) => {
    const code = character.codePointAt(0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

/**
 * Returns a new element. `attributes` are attributes, except handlers such as `onclick` (functions) and `vars` (CSS
 * custom properties). `key` identifies the element among its siblings when the view is drawn again. Children are
 * elements or texts; `null`, `undefined` and `false` are left out, lists are flattened.
 */
export function h(tag, attributes, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (HANDLERS.includes(name)) element[name] = value;
    else if (name === "vars") setVars(element, value);
    else if (name === "key") element.key = String(value);
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
  return element;
}

/** Untrusted text: isolated, so that its writing direction does not affect its surroundings. */
export function untrusted(text, attributes) {
  return h("bdi", attributes, text);
}

/** Untrusted text in a monospaced font. */
export function code(text, attributes) {
  return h("code", { dir: "ltr", ...attributes }, text);
}

function setVars(element, vars) {
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(name, value);
}

/**
 * Makes the children of `container` equal to `children` and keeps every existing element that corresponds to a new one,
 * so that focus, selection, scroll positions and open details stay. If the element with the focus is removed, the
 * nearest element around it that can have the focus gets it.
 */
export function draw(container, ...children) {
  const focused = container.contains(document.activeElement) ? document.activeElement : null;
  const around = [];
  for (let element = focused?.closest("[tabindex]"); element; element = element.parentElement?.closest("[tabindex]")) around.push(element);
  const next = document.createElement("div");
  next.append(...children.flat(Infinity).filter((child) => child instanceof Node || typeof child === "string"));
  updateChildren(container, next);
  if (focused && !focused.isConnected) around.find((element) => element.isConnected)?.focus({ preventScroll: true });
}

function updateChildren(current, next) {
  const wantedNodes = [...next.childNodes];
  const keyed = new Map();
  for (const child of current.childNodes) if (child.key !== undefined) keyed.set(child.key, child);
  const wantedKeys = new Set(wantedNodes.map((node) => node.key));
  for (const [key, child] of keyed) if (!wantedKeys.has(key)) child.remove();
  let position = current.firstChild;
  for (const wanted of wantedNodes) {
    const match = wanted.key === undefined ? position : keyed.get(wanted.key);
    if (match && isSameKind(match, wanted)) {
      if (match === position) position = position.nextSibling;
      else current.insertBefore(match, position);
      updateNode(match, wanted);
    } else {
      current.insertBefore(wanted, position);
    }
  }
  while (position) {
    const rest = position.nextSibling;
    position.remove();
    position = rest;
  }
}

function isSameKind(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.key === other.key;
}

function updateNode(current, next) {
  if (current.nodeType === Node.TEXT_NODE) {
    if (current.data !== next.data) current.data = next.data;
    return;
  }
  for (const { name } of [...current.attributes]) {
    if (!next.hasAttribute(name) && !isPersonsState(current, name)) current.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    // A style attribute is set through the CSSOM below: the content security policy forbids it as an attribute.
    if (name !== "style" && current.getAttribute(name) !== value && !isPersonsState(current, name)) {
      current.setAttribute(name, value);
    }
  }
  for (const name of next.style ?? []) {
    const value = next.style.getPropertyValue(name);
    if (current.style.getPropertyValue(name) !== value) current.style.setProperty(name, value);
  }
  for (const name of HANDLERS) current[name] = next[name];
  if (!next.hasAttribute("data-own")) updateChildren(current, next);
}

/** Whether the person changes this attribute by using the element. */
function isPersonsState(element, name) {
  return (name === "open" && element.nodeName === "DETAILS") || name === "value" || name === "checked" || name === "style";
}
