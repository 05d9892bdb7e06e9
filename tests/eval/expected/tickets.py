"""What the programs must return or print, and do: the leaderboard's tickets."""

from tasks import task


@task("create support tickets")
def open_tickets(t):
    t.tickets.ticket_login(username="emma", password="secret")
    problems = (("Printer", 1), ("VPN", 4), ("Laptop", 5))
    made = [t.tickets.create_ticket(title=name, description=f"{name} does not work", priority=p) for name, p in problems]
    return [[ticket["id"], ticket["title"], ticket["status"]] for ticket in made]


@task("resolve my tickets with high priority")
def resolve_urgent(t):
    t.tickets.ticket_login(username="emma", password="secret")
    for number in range(1, 6):
        t.tickets.create_ticket(title=f"Problem {number}", priority=number)
    for number in (4, 5):
        t.tickets.resolve_ticket(ticket_id=number, resolution="Restarted")
    return {ticket["title"]: ticket["status"] for ticket in t.environment("tickets").ticket_queue}


@task("edit a ticket", printed=True)
def escalate(t):
    t.tickets.ticket_login(username="emma", password="secret")
    t.tickets.create_ticket(title="Server down", priority=2)
    t.tickets.edit_ticket(ticket_id=1, updates={"priority": 5})
    return ["Server down: 2 -> 5"]
