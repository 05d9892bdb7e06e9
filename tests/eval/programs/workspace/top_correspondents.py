from collections import Counter
from mcp_tools.workspace import get_sent_emails

counter = Counter()
for email in get_sent_emails():
    counter.update(email["recipients"])
    counter.update(email["cc"])

counter.most_common(2)
