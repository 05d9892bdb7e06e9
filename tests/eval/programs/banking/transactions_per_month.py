from itertools import groupby
from mcp_tools.banking import get_most_recent_transactions

transactions = sorted(get_most_recent_transactions(n=50), key=lambda t: t["date"])
{month: len(list(group)) for month, group in groupby(transactions, key=lambda t: t["date"][:7])}
