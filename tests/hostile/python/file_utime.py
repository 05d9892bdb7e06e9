# attack: set the times of a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.utime("{DIR}/file", (0, 0))
