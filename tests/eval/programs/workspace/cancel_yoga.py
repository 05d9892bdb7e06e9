from mcp_tools.workspace import cancel_calendar_event, search_calendar_events

canceled = 0
for event in search_calendar_events(query="Yoga"):
    if event["title"] == "Yoga Class" and event["status"] == "confirmed":
        cancel_calendar_event(event_id=event["id_"])
        canceled += 1
canceled
