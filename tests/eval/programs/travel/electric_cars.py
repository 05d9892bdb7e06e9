from mcp_tools.travel import get_car_fuel_options, get_car_rental_address

companies = ["SunSet Rent-A-Car", "Speedy Rentals", "LAX Car Rental"]
options = get_car_fuel_options(company_name=companies)
electric = [name for name in companies if "Electric" in options[name]]
get_car_rental_address(company_name=electric)
