const spent: Record<string, number> = {};
for (const t of await banking.getMostRecentTransactions({ n: 100 })) {
  if (t.sender !== "me") continue;
  spent[t.recipient] = (spent[t.recipient] ?? 0) + t.amount;
}
return Object.entries(spent).sort((a, b) => b[1] - a[1]).slice(0, 2);
