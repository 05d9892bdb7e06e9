from mcp_tools.travel import create_calendar_event, get_rating_reviews_for_restaurants, reserve_restaurant

names = ["Le Baratin", "Bistrot Paul Bert", "Breizh Café"]
reviews = get_rating_reviews_for_restaurants(restaurant_names=names)
best = max(names, key=lambda name: float(reviews[name].split("\n")[0].replace("Rating: ", "")))
reserve_restaurant(restaurant=best, start_time="2024-11-10 19:00")
event = create_calendar_event(title=f"Dinner at {best}", start_time="2024-11-10 19:00", end_time="2024-11-10 21:00")
event["title"]
