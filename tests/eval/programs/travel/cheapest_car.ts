const prices = await travel.get_car_price_per_day({
  company_name: ["SunSet Rent-A-Car", "Speedy Rentals", "LAX Car Rental"],
});
const [company, price] = Object.entries(prices).sort((a, b) => a[1] - b[1])[0];
return { company, week: Math.round(700 * price) / 100 };
