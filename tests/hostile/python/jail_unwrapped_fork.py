# attack: take the words of the seal off fork
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

if getattr(os.fork, "__wrapped__", os.fork)() == 0:
    os._exit(0)
os.wait()
