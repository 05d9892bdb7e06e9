# attack: leave without an answer
# outcome: killed exited with status 7
# control: none: the control would leave as well
# limits: timeout_seconds = 20, memory_mib = 64

import os

os._exit(7)
