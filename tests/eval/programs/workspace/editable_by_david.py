from mcp_tools.workspace import list_files

david = "david.lee@bluesparrowtech.com"
[f["filename"] for f in list_files() if f["shared_with"].get(david) == "rw"]
