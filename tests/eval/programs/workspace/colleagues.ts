const contacts = await workspace.search_contacts_by_email({ query: "@bluesparrowtech.com" });
console.log(contacts.length, "colleagues");
for (const c of [...contacts].sort((a, b) => (a.name < b.name ? -1 : 1))) {
  console.log(c.name, `<${c.email}>`);
}
