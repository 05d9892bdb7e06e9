const [balance, scheduled] = await Promise.all([banking.getBalance(), banking.getScheduledTransactions()]);
const planned = scheduled.reduce((sum, t) => sum + t.amount, 0);
return balance - planned;
