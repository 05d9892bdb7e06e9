const me = "emma.johnson@bluesparrowtech.com";
const days = ["2024-05-15", "2024-05-19", "2024-05-20"];
const people = new Set<string>();
for (const day of days) {
  const events = await workspace.getDayCalendarEvents({ day });
  for (const event of events) {
    for (const p of event.participants) people.add(p);
  }
}
people.delete(me);
return [...people].sort();
