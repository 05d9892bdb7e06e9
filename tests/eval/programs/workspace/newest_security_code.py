from mcp_tools.workspace import search_emails

emails = search_emails(query="security code")
newest = max(emails, key=lambda e: e["timestamp"])
{"from": newest["sender"], "at": newest["timestamp"], "read": newest["read"]}
