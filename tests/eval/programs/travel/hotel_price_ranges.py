import re
from mcp_tools.travel import get_hotels_prices

prices = get_hotels_prices(hotel_names=["Le Marais Boutique", "Good Night", "Montmartre Suites"])
lowest = {}
for hotel, text in prices.items():
    low, high = re.findall(r"\d+\.\d+", text)
    lowest[hotel] = float(low)
min(lowest, key=lowest.get)
