from mcp_tools.travel import get_car_price_per_day

prices = get_car_price_per_day(company_name=["SunSet Rent-A-Car", "Speedy Rentals", "LAX Car Rental"])
cheapest = min(prices, key=prices.get)
{"company": cheapest, "week": round(7 * prices[cheapest], 2)}
