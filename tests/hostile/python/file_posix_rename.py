# attack: replace a file by another, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.replace("{DIR}/renamed", "{DIR}/file")
