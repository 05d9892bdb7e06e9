from datetime import datetime, timedelta
from mcp_tools.workspace import reschedule_calendar_event, search_calendar_events

dentist = search_calendar_events("Dentist")[0]
later = datetime.fromisoformat(dentist["start_time"]) + timedelta(days=7)
moved = reschedule_calendar_event(event_id=dentist["id_"], new_start_time=later.strftime("%Y-%m-%d %H:%M"))
moved["start_time"], moved["end_time"]
