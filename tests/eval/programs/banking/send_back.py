from mcp_tools.banking import get_most_recent_transactions, send_money

received = [t for t in get_most_recent_transactions(n=20) if t["recipient"] == "me"]
messages = []
for t in received:
    result = send_money(recipient=t["sender"], amount=t["amount"], subject="Refund: " + t["subject"], date="2022-04-01")
    messages.append(result["message"])
messages
