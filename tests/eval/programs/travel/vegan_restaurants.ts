const names = ["New Israeli Restaurant", "Le Baratin", "Royal Panda", "China Garden", "Miznon"];
const diets = await travel.getDietaryRestrictionsForAllRestaurants({ restaurant_names: names });
return Object.keys(diets).filter((name) => diets[name].includes("Vegan"));
