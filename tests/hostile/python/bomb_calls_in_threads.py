# attack: make calls that nobody awaits
# outcome: error can't start new thread
# outcome: limit memory limit of 64 MiB reached
# outcome with packages: error can't start new thread
# outcome with packages: limit memory limit of 64 MiB reached
# outcome with packages: timeout did not end within
# control: none: there is no MCP server outside
# limits: timeout_seconds = 20, memory_mib = 64
# endurance: ends by its deadline

# A thread whose memory does not suffice to announce its start makes its creator wait for ever, in some versions of Python.
import threading

from mcp_tools.fixture import slow

while True:
    threading.Thread(target=slow, args=(60_000,)).start()
