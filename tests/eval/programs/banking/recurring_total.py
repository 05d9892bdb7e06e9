from mcp_tools.banking import get_scheduled_transactions

scheduled = get_scheduled_transactions()
sum(t["amount"] for t in scheduled if t["recurring"])
