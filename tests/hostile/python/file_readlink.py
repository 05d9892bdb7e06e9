# attack: read a link of /proc
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.readlink("/proc/self/exe")
