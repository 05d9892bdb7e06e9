# attack: remove a file, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.unlink("{DIR}/removed")
