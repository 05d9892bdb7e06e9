const emails = await workspace.searchEmails({ query: "security code" });
const newest = emails.reduce((a, b) => (a.timestamp > b.timestamp ? a : b));
return { from: newest.sender, at: newest.timestamp, read: newest.read };
