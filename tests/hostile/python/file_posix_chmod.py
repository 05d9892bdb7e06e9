# attack: change a mode, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.chmod("{DIR}/file", 0o700)
