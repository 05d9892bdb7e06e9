# attack: put another descriptor in the place of one
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import os

reads, writes = os.pipe()
os.dup2(reads, writes)
