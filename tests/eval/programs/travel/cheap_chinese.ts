const names = ["New Asiaway", "Royal Panda", "The yard", "China Garden", "Le Baratin"];
const [cuisine, price] = await Promise.all([
  travel.get_cuisine_type_for_restaurants({ restaurant_names: names }),
  travel.get_price_for_restaurants({ restaurant_names: names }),
]);
return names
  .filter((n) => cuisine[n] === "Chinese" && price[n] <= 30)
  .map((n) => [n, price[n]])
  .sort((a, b) => a[1] - b[1] || a[0].localeCompare(b[0]));
