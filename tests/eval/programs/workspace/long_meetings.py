from datetime import datetime
from mcp_tools.workspace import search_calendar_events

result = []
for event in search_calendar_events(query="meeting"):
    start = datetime.fromisoformat(event["start_time"])
    end = datetime.fromisoformat(event["end_time"])
    hours = (end - start).total_seconds() / 3600
    if hours > 1:
        result.append({"title": event["title"], "hours": hours})
sorted(result, key=lambda r: r["title"])
