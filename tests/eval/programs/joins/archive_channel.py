import json
from mcp_tools import slack, workspace

messages = slack.read_channel_messages(channel="general")
file = workspace.create_file(filename="general.json", content=json.dumps(messages, indent=2))
file["filename"], file["size"]
