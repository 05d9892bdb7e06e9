# attack: walk a directory whose errors are not passed on
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

assert list(os.walk("{DIR}"))
