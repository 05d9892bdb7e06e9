const main = async () => {
  const restaurant_names = ["Azabu Ramen", "House of Sushi", "Home Kitchen", "Miznon"];
  const [hours, addresses] = await Promise.all([
    travel.check_restaurant_opening_hours({ restaurant_names }),
    travel.get_restaurants_address({ restaurant_names }),
  ]);
  return restaurant_names
    .filter((n) => hours[n].includes("Sundays") || hours[n].includes("every day"))
    .map((n) => `${n}: ${addresses[n]}`);
};

return main();
