const counts = new Map();
for (const email of await workspace.get_sent_emails()) {
  for (const address of [...email.recipients, ...email.cc]) {
    counts.set(address, (counts.get(address) || 0) + 1);
  }
}
return [...counts.entries()].sort((a, b) => b[1] - a[1]).slice(0, 2);
