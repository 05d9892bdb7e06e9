# attack: start a pool of processes
# outcome: error processes cannot be started
# control: outside

from concurrent.futures import ProcessPoolExecutor

ProcessPoolExecutor(1).shutdown()
