const transactions = await banking.getMostRecentTransactions({});
let biggest = transactions[0];
for (const t of transactions) if (t.amount > biggest.amount) biggest = t;
console.log(biggest.date, biggest.subject);
