# attack: fill what the library remembers
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import importlib

for number in range(1_000_000_000):
    try:
        importlib.import_module(f"mcp_tools.planted{number}")
    except ImportError:
        pass
