from mcp_tools.slack import get_channels, get_users_in_channel, read_channel_messages

writers, members = set(), set()
for channel in get_channels():
    writers |= {message["sender"] for message in read_channel_messages(channel)}
    members |= set(get_users_in_channel(channel))
{"writers": sorted(writers), "quiet": sorted(members - writers)}
