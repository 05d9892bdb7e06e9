const day = await workspace.get_current_day();
const events = await workspace.get_day_calendar_events({ day });
const lines = events
  .sort((a, b) => (a.start_time < b.start_time ? -1 : 1))
  .map((e) => `${e.start_time.slice(11, 16)} ${e.title}`);
await slack.send_channel_message({ channel: "general", body: lines.join("\n") });
return lines.length;
