# attack: scan a directory, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

list(posix.scandir("{DIR}"))
