const today = await workspace.get_current_day();
const events = await workspace.get_day_calendar_events({ day: today });
events.sort((a, b) => a.start_time.localeCompare(b.start_time));
for (const e of events) {
  console.log(`${e.start_time.slice(11, 16)}-${e.end_time.slice(11, 16)} ${e.title} (${e.location})`);
}
