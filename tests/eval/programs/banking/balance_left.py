from mcp_tools.banking import get_balance, get_scheduled_transactions

planned = sum(t["amount"] for t in get_scheduled_transactions())
get_balance() - planned
