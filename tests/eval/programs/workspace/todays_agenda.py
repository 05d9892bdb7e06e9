from mcp_tools.workspace import get_current_day, get_day_calendar_events

today = get_current_day()
events = get_day_calendar_events(day=today)
for event in sorted(events, key=lambda e: e["start_time"]):
    start = event["start_time"][11:16]
    end = event["end_time"][11:16]
    print(f"{start}-{end} {event['title']} ({event['location']})")
