# attack: start a worker process
# outcome: error processes cannot be started
# control: outside

import multiprocessing

process = multiprocessing.get_context("fork").Process(target=print)
process.start()
process.join()
