# attack: ask how busy the host is
# outcome: error unobtainable
# control: outside

import os

os.getloadavg()
