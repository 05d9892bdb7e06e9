const scheduled = await banking.getScheduledTransactions();
return scheduled.filter((t) => t.recurring).reduce((sum, t) => sum + t.amount, 0);
