# attack: end by abort
# outcome: killed (SIGABRT)
# control: none: the control would end by the signal as well

import os

os.abort()
