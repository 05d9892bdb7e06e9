# attack: parse JSON that is nested without end
# outcome: error maximum recursion depth exceeded
# outcome: limit memory limit of 64 MiB reached
# control: none: outside it may crash as well
# limits: timeout_seconds = 20, memory_mib = 64

import json

json.loads("[" * 1_000_000)
