const [event] = await workspace.search_calendar_events({ query: "Team Sync" });
const others = event.participants.filter((p) => !p.startsWith("emma.johnson"));
const sent = await workspace.send_email({
  recipients: others,
  subject: `Reminder: ${event.title}`,
  body: `See you at ${event.start_time.slice(11, 16)} in ${event.location}.`,
});
return sent.recipients;
