const [kickoff] = await workspace.search_calendar_events({ query: "kick-off" });
const newPeople: string[] = [];
for (const query of ["Katie", "David Smith"]) {
  const matches = await workspace.search_contacts_by_name({ query });
  newPeople.push(...matches.map((c) => c.email));
}
const updated = await workspace.add_calendar_event_participants({ event_id: kickoff.id_, participants: newPeople });
return { title: updated.title, participants: updated.participants.length };
