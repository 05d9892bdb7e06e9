# attack: write to the own memory through /proc, past its protection
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

memory = posix.open("/proc/self/mem", 2)
