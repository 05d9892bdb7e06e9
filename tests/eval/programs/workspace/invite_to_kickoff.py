from mcp_tools.workspace import add_calendar_event_participants, search_calendar_events, search_contacts_by_name

kickoff = search_calendar_events("kick-off")[0]
new_people = []
for name in ["Katie", "David Smith"]:
    new_people += [c["email"] for c in search_contacts_by_name(query=name)]
updated = add_calendar_event_participants(event_id=kickoff["id_"], participants=new_people)
{"title": updated["title"], "participants": len(updated["participants"])}
