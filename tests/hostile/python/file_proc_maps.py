# attack: read the own memory map
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import _io

_io.FileIO("/proc/self/maps").read()
