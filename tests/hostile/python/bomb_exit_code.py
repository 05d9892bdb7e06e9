# attack: leave by the interpreter's own way
# outcome: error the code called exit
# control: none: the control would leave as well
# limits: timeout_seconds = 20, memory_mib = 64

import sys

sys.exit("x" * 100_000)
