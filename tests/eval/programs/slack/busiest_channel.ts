let busiest = "";
let most = -1;
for (const channel of await slack.get_channels()) {
  const messages = await slack.read_channel_messages({ channel });
  if (messages.length > most) {
    most = messages.length;
    busiest = channel;
  }
}
await slack.send_channel_message({ channel: busiest, body: `${most} messages so far` });
return busiest;
