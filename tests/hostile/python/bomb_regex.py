# attack: match a regular expression that never ends
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

import re

re.match(r"(a+)+$", "a" * 64 + "b")
