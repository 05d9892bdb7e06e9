const messages = await slack.readInbox({ user: "Bob" });
console.log([...new Set(messages.map((m) => m.sender))].sort().join(", "));
