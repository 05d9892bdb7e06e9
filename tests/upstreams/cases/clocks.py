# Every pair of time zones, and one that does not exist.
from mcp_tools import ToolError, time

zones = @ZONES@
table = {}
for source in zones:
    for target in zones:
        there = time.convert_time(source, "21:40", target)
        table[f"{source} {target}"] = [there["target"]["datetime"][11:16], there["time_difference"]]
try:
    time.convert_time(source_timezone="UTC", time="12:00", target_timezone="Mars/Olympus")
except ToolError as error:
    table["wrong"] = [error.code, error.server, error.tool, "Mars/Olympus" in error.message]
table
