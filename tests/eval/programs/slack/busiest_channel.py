from mcp_tools.slack import get_channels, read_channel_messages, send_channel_message

counts = {channel: len(read_channel_messages(channel=channel)) for channel in get_channels()}
busiest = max(counts, key=counts.get)
send_channel_message(channel=busiest, body=f"{counts[busiest]} messages so far")
busiest
