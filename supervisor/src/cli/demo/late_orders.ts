type Page = { next_offset: number | null } & Record<string, any[]>;

async function every(tool: (args: object) => Promise<Page>, key: string): Promise<any[]> {
  const rows: any[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const page = await tool({ offset, limit: 500 });
    rows.push(...page[key]);
    offset = page.next_offset;
  }
  return rows;
}

const [customers, orders, tickets] = await Promise.all([
  every(shop.list_customers, "customers"), every(shop.list_orders, "orders"), every(shop.list_tickets, "tickets"),
]);
const country = new Map(customers.map((c) => [c.id, c.country]));
const late = new Map(orders.filter((o) => o.status === "late").map((o) => [o.id, country.get(o.customer_id)]));
const rows: Record<string, { country: string; late: number; tickets: number }> = {};
for (const c of late.values()) (rows[c] ??= { country: c, late: 0, tickets: 0 }).late++;
for (const t of tickets) if (late.has(t.order_id)) rows[late.get(t.order_id)].tickets++;
return Object.values(rows).sort((a, b) => b.late - a.late).slice(0, 4);
