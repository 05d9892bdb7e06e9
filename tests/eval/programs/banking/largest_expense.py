from mcp_tools.banking import get_most_recent_transactions

biggest = max(get_most_recent_transactions(), key=lambda t: t["amount"])
print(biggest["date"], biggest["subject"])
