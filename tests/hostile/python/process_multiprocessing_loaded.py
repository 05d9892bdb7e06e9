# attack: start a worker process with the module loaded by the administrator
# outcome: error not available in the Lockhouse sandbox: processes cannot be started
# control: outside
# preload: multiprocessing multiprocessing.popen_fork

import multiprocessing

process = multiprocessing.get_context("fork").Process(target=print)
process.start()
process.join()
