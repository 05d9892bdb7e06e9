from mcp_tools import tickets

tickets.ticket_login(username="emma", password="secret")
for number in range(1, 6):
    tickets.create_ticket(title=f"Problem {number}", priority=number)

urgent = [t for t in tickets.get_user_tickets() if t["priority"] >= 4]
for ticket in urgent:
    tickets.resolve_ticket(ticket_id=ticket["id"], resolution="Restarted")
{t["title"]: t["status"] for t in tickets.get_user_tickets()}
