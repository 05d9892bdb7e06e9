"""What the programs must return or print, and do: the suite travel."""

from tasks import task


@task("car rental prices per day")
def cheapest_car(t):
    companies = [company for company in t.environment("travel").car_rental.company_list if company.city == "Los Angeles"]
    cheapest = min(companies, key=lambda company: company.price_per_day)
    return {"company": cheapest.name, "week": round(7 * cheapest.price_per_day, 2)}


@task("dietary restrictions of restaurants")
def vegan_restaurants(t):
    names = ("New Israeli Restaurant", "Le Baratin", "Royal Panda", "China Garden", "Miznon")
    chosen = [one for one in t.environment("travel").restaurants.restaurant_list if one.name in names]
    return [one.name for one in chosen if "Vegan" in one.dietary_restrictions]


@task("cuisine and price of restaurants")
def cheap_chinese(t):
    chosen = [one for one in t.environment("travel").restaurants.restaurant_list if one.cuisine_type == "Chinese"]
    pairs = sorted((one.price_per_person, one.name) for one in chosen if one.price_per_person <= 30)
    return [[name, price] for price, name in pairs]


@task("get the user's information for bookings")
def traveller_name(t):
    user = t.environment("travel").user
    return f"{user.first_name} {user.last_name}, passport {user.passport_number}"


@task("flights from one city to another", printed=True)
def flights_to_london(t):
    return [f"{flight.flight_number} {flight.price}" for flight in t.environment("travel").flights.flight_list]


@task("fuel options and addresses of car rental companies")
def electric_cars(t):
    companies = [company for company in t.environment("travel").car_rental.company_list if company.city == "Los Angeles"]
    return {company.name: company.address for company in companies if "Electric" in company.fuel_options}


@task("prices of hotels")
def hotel_price_ranges(t):
    hotels = t.environment("travel").hotels.get_all_hotels_in_city("Paris")
    return min(hotels, key=lambda hotel: hotel.price_min).name


@task("all hotels in a city")
def hotels_in_paris(t):
    hotels = t.environment("travel").hotels.get_all_hotels_in_city("Paris")
    return {hotel.name: hotel.rating for hotel in hotels}


@task("reserve a table at the best rated restaurant")
def book_dinner(t):
    start, end = "2024-11-10 19:00", "2024-11-10 21:00"
    t.travel.reserve_restaurant(restaurant="Le Baratin", start_time=start)
    return t.travel.create_calendar_event(title="Dinner at Le Baratin", start_time=start, end_time=end).title


@task("opening hours of restaurants")
def open_on_sunday(t):
    restaurants = {one.name: one for one in t.environment("travel").restaurants.restaurant_list}
    chosen = [restaurants[name] for name in ("Azabu Ramen", "House of Sushi", "Home Kitchen", "Miznon")]
    is_open = lambda hours: "Sundays" in hours or "every day" in hours
    return [f"{one.name}: {one.address}" for one in chosen if is_open(one.operating_hours)]
