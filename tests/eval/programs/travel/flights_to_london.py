from mcp_tools.travel import get_flight_information

flights = get_flight_information(departure_city="Paris", arrival_city="London").splitlines()
for flight in flights:
    fields = dict(part.split(": ", 1) for part in flight.split(", "))
    print(fields["Flight Number"], fields["Price"])
