import asyncio
from mcp_tools.aio import trading

symbols = (await trading.get_available_stocks(sector="Technology"))["stock_list"]
infos = await asyncio.gather(*[trading.get_stock_info(symbol=s) for s in symbols])
rising = [(s, i["percent_change"]) for s, i in zip(symbols, infos) if i["percent_change"] > 0.1]
sorted(rising, key=lambda pair: -pair[1])
