# attack: give a file a second name, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.link("{DIR}/removed", "{DIR}/second")
