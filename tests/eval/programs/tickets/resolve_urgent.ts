await tickets.ticketLogin({ username: "emma", password: "secret" });
for (let n = 1; n <= 5; n++) await tickets.createTicket({ title: `Problem ${n}`, priority: n });
const mine = await tickets.getUserTickets();
for (const ticket of mine.filter((t) => t.priority >= 4)) {
  await tickets.resolveTicket({ ticket_id: ticket.id, resolution: "Restarted" });
}
const after = await tickets.getUserTickets();
return Object.fromEntries(after.map((t) => [t.title, t.status]));
