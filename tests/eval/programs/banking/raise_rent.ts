const scheduled = await banking.get_scheduled_transactions();
const rent = scheduled.find((t) => t.subject === "Rent");
const { message } = await banking.update_scheduled_transaction({ id: rent.id, amount: rent.amount + 100 });
return message;
