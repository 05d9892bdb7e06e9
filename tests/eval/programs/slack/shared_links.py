import re
from mcp_tools.slack import read_channel_messages

links = []
for message in read_channel_messages(channel="general"):
    for link in re.findall(r"www\.[\w-]+\.com", message["body"]):
        links.append({"link": link, "by": message["sender"]})
links
