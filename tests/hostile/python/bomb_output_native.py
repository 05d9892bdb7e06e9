# attack: write without end below the library
# outcome: limit output limit of 1024 KiB reached
# control: none: there is no supervisor outside
# limits: timeout_seconds = 20, memory_mib = 64

import _lockhouse

while True:
    _lockhouse.write(1, "x" * 100_000)
