# attack: read the own environment through /proc
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

open("/proc/self/environ", "rb").read()
