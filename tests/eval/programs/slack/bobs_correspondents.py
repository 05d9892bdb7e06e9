from mcp_tools.slack import read_inbox

messages = read_inbox("Bob")
print(", ".join(sorted({m["sender"] for m in messages})))
