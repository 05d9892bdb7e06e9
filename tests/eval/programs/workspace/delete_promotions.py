from mcp_tools.workspace import delete_email, get_received_emails

spam = ("promotions@traveldeals.com", "info@best-event-organizers.com")
deleted = []
for email in get_received_emails():
    if email["sender"] in spam:
        delete_email(email_id=email["id_"])
        deleted.append(email["subject"])
print("\n".join(deleted))
