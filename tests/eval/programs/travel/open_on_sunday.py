import asyncio
from mcp_tools.aio.travel import check_restaurant_opening_hours, get_restaurants_address

async def main():
    names = ["Azabu Ramen", "House of Sushi", "Home Kitchen", "Miznon"]
    hours, addresses = await asyncio.gather(
        check_restaurant_opening_hours(restaurant_names=names),
        get_restaurants_address(restaurant_names=names),
    )
    return [f"{n}: {addresses[n]}" for n in names if "Sundays" in hours[n] or "every day" in hours[n]]

await main()
