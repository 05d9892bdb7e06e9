# attack: read a file with posix, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.read(posix.open("{DIR}/file", 0), 100)
