from mcp_tools.trading import get_stock_info, get_watchlist

prices = {symbol: get_stock_info(symbol=symbol)["price"] for symbol in get_watchlist()["watchlist"]}
{"prices": prices, "total": round(sum(prices.values()), 2)}
