from mcp_tools.trading import get_stock_info, get_symbol_by_name
from mcp_tools.twitter import post_tweet

symbol = get_symbol_by_name("Nvidia")["symbol"]
info = get_stock_info(symbol)
tweet = post_tweet(content=f"{symbol} is at {info['price']}", tags=["#" + symbol])
tweet["content"]
