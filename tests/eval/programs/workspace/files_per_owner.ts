const byOwner = new Map<string, string[]>();
for (const f of await workspace.listFiles()) {
  byOwner.set(f.owner, [...(byOwner.get(f.owner) ?? []), f.filename]);
}
const result: Record<string, number> = {};
for (const [owner, names] of byOwner) {
  if (names.length > 1) result[owner] = names.length;
}
return result;
