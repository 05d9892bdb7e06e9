let canceled = 0;
for (const event of await workspace.searchCalendarEvents({ query: "Yoga" })) {
  if (event.title === "Yoga Class" && event.status === "confirmed") {
    await workspace.cancelCalendarEvent({ event_id: event.id_ });
    canceled++;
  }
}
return canceled;
