from mcp_tools.tickets import create_ticket, get_user_tickets, ticket_login
from mcp_tools.workspace import get_day_calendar_events

ticket_login(username="emma", password="secret")
for event in get_day_calendar_events(day="2024-05-25"):
    if "eadline" in event["title"]:
        create_ticket(title=event["title"], description=event["description"], priority=5)
[t["title"] for t in get_user_tickets(status="Open")]
