const transactions = JSON.parse(await banking.get_scheduled_transactions());
return Object.fromEntries(transactions.map((t) => [t.subject, t.date]));
