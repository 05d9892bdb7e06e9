# attack: spawn a program, below os
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix.waitpid(posix.posix_spawn("/bin/true", ["true"], {}), 0)
