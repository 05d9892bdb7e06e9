const people = await slack.get_users_in_channel({ channel: "random" });
const prices = await travel.get_price_for_restaurants({ restaurant_names: ["Le Baratin"] });
const total = prices["Le Baratin"] * people.length;
await banking.send_money({
  recipient: "GB29NWBK60161331926819",
  amount: total,
  subject: "Dinner for " + people.join(" and "),
  date: "2024-05-16",
});
return total;
