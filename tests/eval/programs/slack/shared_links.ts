const messages = await slack.readChannelMessages({ channel: "general" });
return messages.flatMap((m) => (m.body.match(/www\.[\w-]+\.com/g) ?? []).map((link) => ({ link, by: m.sender })));
