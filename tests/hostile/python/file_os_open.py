# attack: read a file with os.open
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.read(os.open("{DIR}/file", os.O_RDONLY), 100)
