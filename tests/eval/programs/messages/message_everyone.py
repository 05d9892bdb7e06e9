from mcp_tools.messages import get_user_id, list_users, message_login, send_message

message_login(user_id="USR001")
sent = 0
for name in list_users()["user_list"]:
    receiver = get_user_id(user=name)["user_id"]
    if receiver != "USR001":
        result = send_message(receiver_id=receiver, message=f"Hello {name}")
        sent += result["sent_status"]
sent
