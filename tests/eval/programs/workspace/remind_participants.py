from mcp_tools.workspace import search_calendar_events, send_email

event = search_calendar_events(query="Team Sync")[0]
others = [p for p in event["participants"] if not p.startswith("emma.johnson")]
sent = send_email(
    recipients=others,
    subject=f"Reminder: {event['title']}",
    body=f"See you at {event['start_time'][11:16]} in {event['location']}.",
)
sent["recipients"]
