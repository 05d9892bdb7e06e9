from mcp_tools.messages import message_login, search_messages, view_messages_sent

message_login("USR001")
found = search_messages(keyword="upload")["results"]
sent = view_messages_sent()["messages"]
{"receivers": sorted(r["receiver_id"] for r in found), "conversations": len(sent)}
