# attack: find files by a pattern
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import glob

assert glob.glob("{DIR}/*")
