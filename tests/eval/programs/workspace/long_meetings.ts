const events = await workspace.searchCalendarEvents({ query: "meeting" });
const long = events
  .map((e) => ({ title: e.title, hours: (Date.parse(e.end_time) - Date.parse(e.start_time)) / 3_600_000 }))
  .filter((e) => e.hours > 1);
long.sort((a, b) => (a.title < b.title ? -1 : 1));
return long;
