# attack: sleep without end
# outcome: timeout did not end within 1 s
# control: none: it would not end
# limits: timeout_seconds = 1
# endurance: ends at its deadline

import time

time.sleep(1 << 20)
