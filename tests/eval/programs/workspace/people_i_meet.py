from mcp_tools.workspace import get_day_calendar_events

me = "emma.johnson@bluesparrowtech.com"
people = set()
for day in ("2024-05-15", "2024-05-19", "2024-05-20"):
    for event in get_day_calendar_events(day):
        people.update(event["participants"])
people.discard(me)
sorted(people)
