const perMonth = {};
for (const { date } of await banking.get_most_recent_transactions({ n: 50 })) {
  const month = date.substring(0, 7);
  perMonth[month] = (perMonth[month] || 0) + 1;
}
return perMonth;
