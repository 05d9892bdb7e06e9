from mcp_tools.travel import get_cuisine_type_for_restaurants, get_price_for_restaurants

names = ["New Asiaway", "Royal Panda", "The yard", "China Garden", "Le Baratin"]
cuisine = get_cuisine_type_for_restaurants(names)
price = get_price_for_restaurants(names)
chinese = {n: price[n] for n in names if cuisine[n] == "Chinese" and price[n] <= 30}
sorted(chinese.items(), key=lambda item: (item[1], item[0]))
