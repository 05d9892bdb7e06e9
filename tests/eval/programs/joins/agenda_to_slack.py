from mcp_tools.slack import send_channel_message
from mcp_tools.workspace import get_current_day, get_day_calendar_events

events = get_day_calendar_events(day=get_current_day())
lines = [f"{e['start_time'][11:16]} {e['title']}" for e in sorted(events, key=lambda e: e["start_time"])]
send_channel_message(channel="general", body="\n".join(lines))
len(lines)
