const writers = new Set<string>();
const members = new Set<string>();
for (const channel of await slack.getChannels()) {
  for (const m of await slack.readChannelMessages({ channel })) writers.add(m.sender);
  for (const user of await slack.getUsersInChannel({ channel })) members.add(user);
}
return { writers: [...writers].sort(), quiet: [...members].filter((m) => !writers.has(m)).sort() };
