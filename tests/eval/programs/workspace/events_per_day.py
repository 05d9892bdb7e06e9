import asyncio
from mcp_tools.aio import workspace

days = [f"2024-05-{day}" for day in range(24, 29)]
lists = await asyncio.gather(*(workspace.get_day_calendar_events(day=day) for day in days))
{day: len(events) for day, events in zip(days, lists)}
