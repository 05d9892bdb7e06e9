const channels = await slack.getChannels();
const result: Record<string, number> = {};
await Promise.all(
  channels.map(async (channel) => {
    const members = await slack.getUsersInChannel({ channel });
    result[channel] = members.length;
  }),
);
return result;
