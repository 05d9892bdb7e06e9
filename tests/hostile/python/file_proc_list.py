# attack: list all processes
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

assert [name for name in os.listdir("/proc") if name.isdigit()]
