# attack: ask how busy the host is
# outcome: error not available in the Lockhouse sandbox
# control: outside

import os

os.getloadavg()
