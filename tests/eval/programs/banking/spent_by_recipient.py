from collections import defaultdict
from mcp_tools import banking

spent = defaultdict(float)
for transaction in banking.get_most_recent_transactions(n=100):
    if transaction["sender"] == "me":
        spent[transaction["recipient"]] += transaction["amount"]

result = sorted(spent.items(), key=lambda pair: pair[1], reverse=True)
result[:2]
