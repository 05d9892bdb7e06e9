await tickets.ticketLogin({ username: "emma", password: "secret" });
const events = await workspace.getDayCalendarEvents({ day: "2024-05-25" });
for (const event of events.filter((e) => e.title.includes("eadline"))) {
  await tickets.createTicket({ title: event.title, description: event.description, priority: 5 });
}
const open = await tickets.getUserTickets({ status: "Open" });
return open.map((t) => t.title);
