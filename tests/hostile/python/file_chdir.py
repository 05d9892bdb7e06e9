# attack: change the directory
# outcome: error not available in the Lockhouse sandbox: files cannot be opened
# control: outside

import os

os.chdir("{DIR}")
