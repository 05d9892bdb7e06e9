const spam = ["promotions@traveldeals.com", "info@best-event-organizers.com"];
const received = await workspace.getReceivedEmails();
const doomed = received.filter((email) => spam.includes(email.sender));
for (const email of doomed) await workspace.deleteEmail({ email_id: email.id_ });
console.log(doomed.map((email) => email.subject).join("\n"));
