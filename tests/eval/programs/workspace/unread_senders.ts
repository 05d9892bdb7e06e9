const emails = await workspace.get_unread_emails();
const counts: Record<string, number> = {};
for (const email of emails) {
  counts[email.sender] = (counts[email.sender] ?? 0) + 1;
}
return counts;
