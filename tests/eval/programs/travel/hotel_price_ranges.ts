const prices = await travel.get_hotels_prices({
  hotel_names: ["Le Marais Boutique", "Good Night", "Montmartre Suites"],
});
let best = null;
for (const hotel of Object.keys(prices)) {
  const low = parseFloat(prices[hotel].match(/\d+\.\d+/)[0]);
  if (best === null || low < best.low) best = { hotel, low };
}
return best.hotel;
