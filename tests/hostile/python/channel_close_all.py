# attack: close every descriptor
# outcome: killed the worker
# control: none: there is no channel outside

import os

os.closerange(0, 64)
1
