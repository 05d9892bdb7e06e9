# attack: walk a directory whose errors are not passed on
# outcome: error nothing was found
# control: outside

import os

assert list(os.walk("{DIR}")), "nothing was found"
