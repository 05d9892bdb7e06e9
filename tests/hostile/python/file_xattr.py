# attack: list the attributes of a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.listxattr("{DIR}/file")
