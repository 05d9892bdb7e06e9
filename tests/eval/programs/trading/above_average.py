from mcp_tools.trading import add_to_watchlist, get_stock_info

symbols = ["AAPL", "TSLA", "QUAS", "ZETA", "NEPT"]
strong = []
for symbol in symbols:
    info = get_stock_info(symbol=symbol)
    if info["price"] > info["MA(5)"] > info["MA(20)"]:
        strong.append(symbol)
for symbol in strong:
    watchlist = add_to_watchlist(stock=symbol)["watchlist"]
watchlist
