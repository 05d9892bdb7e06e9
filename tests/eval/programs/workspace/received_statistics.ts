const emails = await workspace.getReceivedEmails();
const total = emails.reduce((sum, e) => sum + e.body.length, 0);
return { emails: emails.length, average_length: Math.round(total / emails.length) };
