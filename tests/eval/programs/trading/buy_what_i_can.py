from mcp_tools.trading import get_account_info, get_order_details, get_stock_info, place_order

balance = get_account_info()["balance"]
price = get_stock_info("NVDA")["price"]
order = place_order(order_type="Buy", symbol="NVDA", price=price, amount=int(balance // price))
details = get_order_details(order_id=order["order_id"])
details["symbol"], details["amount"], details["status"]
