# attack: change a limit of the parent
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside
# preload: resource

import os
import resource

resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE))
