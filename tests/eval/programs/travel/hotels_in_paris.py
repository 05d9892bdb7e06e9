from mcp_tools.travel import get_all_hotels_in_city, get_rating_reviews_for_hotels

names = get_all_hotels_in_city(city="Paris").replace("Hotel Names: ", "").strip().split("\n")
reviews = get_rating_reviews_for_hotels(hotel_names=names)
{name: float(reviews[name].split("\n")[0].split(": ")[1]) for name in names}
