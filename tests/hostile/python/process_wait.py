# attack: reap a child of the zygote
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: there is no child to wait for outside either

import os

os.waitpid(-1, 0)
