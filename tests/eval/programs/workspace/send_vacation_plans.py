from mcp_tools.workspace import search_contacts_by_name, search_files_by_filename, send_email

plans = search_files_by_filename(filename="vacation-plans")
to = search_contacts_by_name(query="Lily White")
email = send_email(
    recipients=[c["email"] for c in to],
    subject="Vacation plans",
    body="Attached: " + ", ".join(p["filename"] for p in plans),
    attachments=[{"type": "file", "file_id": p["id_"]} for p in plans],
)
print(f"sent email {email['id_']} with {len(email['attachments'])} attachments")
