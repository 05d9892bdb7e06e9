# attack: find os by the modules of a permitted module's modules
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import queue

system = queue.threading._sys.modules["posix"].fork
if system() == 0:
    queue.threading._sys.modules["posix"]._exit(0)
queue.threading._sys.modules["posix"].wait()
