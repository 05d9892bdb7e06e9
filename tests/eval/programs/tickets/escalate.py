from mcp_tools.tickets import create_ticket, edit_ticket, get_ticket, ticket_login

def main():
    ticket_login("emma", "secret")
    ticket = create_ticket(title="Server down", priority=2)
    edit_ticket(ticket_id=ticket["id"], updates={"priority": ticket["priority"] + 3})
    after = get_ticket(ticket_id=ticket["id"])
    print(f"{after['title']}: {ticket['priority']} -> {after['priority']}")

main()
