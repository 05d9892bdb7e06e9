from collections import Counter
from mcp_tools.workspace import get_unread_emails

emails = get_unread_emails()
dict(Counter(e["sender"] for e in emails))
