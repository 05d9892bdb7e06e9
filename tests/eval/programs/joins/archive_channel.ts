const messages = await slack.read_channel_messages({ channel: "general" });
const file = await workspace.create_file({
  filename: "general.json",
  content: JSON.stringify(messages, null, 2),
});
return [file.filename, file.size];
