from mcp_tools import slack

users = slack.get_users_in_channel(channel="general")
for user in users:
    slack.send_direct_message(recipient=user, body=f"Thank you, {user}!")
len(users)
