import json
from mcp_tools.banking import get_scheduled_transactions

transactions = json.loads(get_scheduled_transactions())
{t["subject"]: t["date"] for t in transactions}
