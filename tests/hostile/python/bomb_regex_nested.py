# attack: compile a regular expression that never ends
# outcome: error maximum recursion depth exceeded
# outcome: error repeat
# outcome: limit memory limit of 64 MiB reached
# control: none: it would not end
# limits: timeout_seconds = 20, memory_mib = 64

import re

re.compile("(?:" * 5_000 + "a{1000}" + "){1000}" * 5_000)
