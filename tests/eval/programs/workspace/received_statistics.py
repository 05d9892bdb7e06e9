from mcp_tools.workspace import get_received_emails

emails = get_received_emails()
total = sum(len(e["body"]) for e in emails)
{"emails": len(emails), "average_length": round(total / len(emails))}
