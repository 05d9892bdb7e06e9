# attack: list a directory
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.listdir("{DIR}")
