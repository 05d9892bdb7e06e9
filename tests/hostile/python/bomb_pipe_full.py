# attack: fill a pipe that nobody reads
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

import os

reads, writes = os.pipe()
while True:
    os.write(writes, b"x" * 65_536)
