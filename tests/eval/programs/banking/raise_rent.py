from mcp_tools.banking import get_scheduled_transactions, update_scheduled_transaction

rent = next(t for t in get_scheduled_transactions() if t["subject"] == "Rent")
answer = update_scheduled_transaction(id=rent["id"], amount=rent["amount"] + 100)
answer["message"]
