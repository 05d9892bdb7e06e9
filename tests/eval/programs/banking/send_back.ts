const recent = await banking.get_most_recent_transactions({ n: 20 });
const messages = [];
for (const t of recent.filter((t) => t.recipient === "me")) {
  const result = await banking.send_money({
    recipient: t.sender,
    amount: t.amount,
    subject: "Refund: " + t.subject,
    date: "2022-04-01",
  });
  messages.push(result.message);
}
return messages;
