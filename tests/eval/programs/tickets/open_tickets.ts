const login = await tickets.ticket_login({ username: "emma", password: "secret" });
if (!login.success) throw new Error("login failed");
const created = [];
for (const [title, priority] of [["Printer", 1], ["VPN", 4], ["Laptop", 5]]) {
  created.push(await tickets.create_ticket({ title, description: `${title} does not work`, priority }));
}
return created.map((t) => [t.id, t.title, t.status]);
