// Keeps the rows of a list where they are while the person uses it.

/** Whether the pointer or the focus is in a list that is marked with `data-steady`. */
function isInUse() {
  return document.querySelector("[data-steady]:hover, [data-steady]:focus-within") !== null;
}

/**
 * Returns a function that orders items. While the list is in use, items keep the places that they had, and new items
 * follow at the end; otherwise the given order holds.
 */
export function steadyOrder() {
  let previous = [];
  return (items, keyOf) => {
    let ordered = items;
    if (isInUse()) {
      const byKey = new Map(items.map((item) => [keyOf(item), item]));
      const staying = previous.filter((key) => byKey.has(key));
      const old = new Set(staying);
      ordered = [...staying.map((key) => byKey.get(key)), ...items.filter((item) => !old.has(keyOf(item)))];
    }
    previous = ordered.map(keyOf);
    return ordered;
  };
}
