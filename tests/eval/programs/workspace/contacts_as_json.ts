const contacts = JSON.parse(await workspace.search_contacts_by_name({ query: "Sarah" }));
return contacts.map((c) => c.email);
