# attack: write ten gigabytes to the standard error
# outcome: limit output limit of 1024 KiB reached
# control: none: it would fill the disk
# limits: timeout_seconds = 20, memory_mib = 64

import sys

while True:
    sys.stderr.write("x" * 1_000_000)
