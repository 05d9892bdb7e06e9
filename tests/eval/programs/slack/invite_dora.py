import re
from mcp_tools.slack import add_user_to_channel, get_users_in_channel, get_webpage, invite_user_to_slack

page = get_webpage(url="www.dora-website.com")
email = re.search(r"[\w.]+@[\w.]+\w", page).group()
invite_user_to_slack(user="Dora", user_email=email)
for channel in ["general", "random"]:
    add_user_to_channel(user="Dora", channel=channel)
{"email": email, "general": get_users_in_channel(channel="general")}
