import json
from mcp_tools.workspace import search_contacts_by_name

contacts = json.loads(search_contacts_by_name(query="Sarah"))
[c["email"] for c in contacts]
