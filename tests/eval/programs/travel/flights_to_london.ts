const text = await travel.get_flight_information({ departure_city: "Paris", arrival_city: "London" });
for (const flight of text.split("\n")) {
  const fields = Object.fromEntries(flight.split(", ").map((part) => part.split(": ")));
  console.log(fields["Flight Number"], fields["Price"]);
}
