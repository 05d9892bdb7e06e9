# attack: write without end to the descriptor of the standard output
# outcome: error Broken pipe
# control: none: it would fill the disk
# limits: timeout_seconds = 20, memory_mib = 64

import os

while True:
    os.write(1, b"x" * 65_536)
