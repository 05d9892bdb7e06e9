from mcp_tools.banking import send_money
from mcp_tools.slack import get_users_in_channel
from mcp_tools.travel import get_price_for_restaurants

people = get_users_in_channel(channel="random")
price = get_price_for_restaurants(restaurant_names=["Le Baratin"])["Le Baratin"]
total = price * len(people)
send_money(recipient="GB29NWBK60161331926819", amount=total, subject="Dinner for " + " and ".join(people), date="2024-05-16")
total
