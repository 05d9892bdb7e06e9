from mcp_tools.vehicle import estimate_distance, estimate_drive_feasibility_by_mileage, get_zipcode_based_on_city

zips = [get_zipcode_based_on_city(city=city)["zipcode"] for city in ("San Francisco", "Rivermist")]
distance = estimate_distance(cityA=zips[0], cityB=zips[1])["distance"]
feasible = estimate_drive_feasibility_by_mileage(distance=distance)["canDrive"]
{"distance": distance, "feasible": feasible}
