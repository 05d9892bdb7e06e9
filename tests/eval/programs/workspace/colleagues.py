from mcp_tools.workspace import search_contacts_by_email

contacts = search_contacts_by_email(query="@bluesparrowtech.com")
print(len(contacts), "colleagues")
for contact in sorted(contacts, key=lambda c: c["name"]):
    print(contact["name"], "<" + contact["email"] + ">")
