import asyncio
from mcp_tools.aio import slack

channels = await slack.get_channels()
members = await asyncio.gather(*[slack.get_users_in_channel(channel=c) for c in channels])
{c: len(m) for c, m in zip(channels, members)}
