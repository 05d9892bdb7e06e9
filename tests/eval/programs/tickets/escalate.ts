async function main() {
  await tickets.ticket_login({ username: "emma", password: "secret" });
  const ticket = await tickets.create_ticket({ title: "Server down", priority: 2 });
  await tickets.edit_ticket({ ticket_id: ticket.id, updates: { priority: ticket.priority + 3 } });
  const after = await tickets.get_ticket({ ticket_id: ticket.id });
  console.log(`${after.title}: 2 -> ${after.priority}`);
}

await main();
