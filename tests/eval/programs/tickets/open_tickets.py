from mcp_tools.tickets import create_ticket, ticket_login

assert ticket_login(username="emma", password="secret")["success"]
problems = [("Printer", 1), ("VPN", 4), ("Laptop", 5)]
tickets = [create_ticket(title=title, description=f"{title} does not work", priority=p) for title, p in problems]
[(t["id"], t["title"], t["status"]) for t in tickets]
