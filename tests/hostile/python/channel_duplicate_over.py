# attack: put a pipe over the channel
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: there is no channel outside

import os

import _lockhouse

reads, writes = os.pipe()
os.dup2(reads, _lockhouse.fileno())
