# attack: become the owner of a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.chown("{DIR}/file", os.geteuid(), os.getegid())
