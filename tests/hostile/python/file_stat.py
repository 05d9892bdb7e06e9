# attack: ask for a file's size
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.stat("{DIR}/file").st_size
