const text = await travel.get_all_hotels_in_city({ city: "Paris" });
const names = text.replace("Hotel Names: ", "").trim().split("\n");
const reviews = await travel.get_rating_reviews_for_hotels({ hotel_names: names });
const ratings: Record<string, number> = {};
for (const name of names) ratings[name] = Number(reviews[name].split("\n")[0].split(": ")[1]);
return ratings;
