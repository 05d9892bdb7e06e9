from mcp_tools.travel import get_dietary_restrictions_for_all_restaurants

names = ["New Israeli Restaurant", "Le Baratin", "Royal Panda", "China Garden", "Miznon"]
diets = get_dietary_restrictions_for_all_restaurants(restaurant_names=names)
[name for name, diet in diets.items() if "Vegan" in diet]
