# attack: make shared memory with multiprocessing
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside
# preload: multiprocessing.shared_memory

from multiprocessing import shared_memory

memory = shared_memory.SharedMemory(create=True, size=4096)
memory.close()
memory.unlink()
