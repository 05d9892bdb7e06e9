# attack: load a module again, without the words of the seal
# outcome: error no shell ran
# control: outside

import importlib
import os

try:
    importlib.reload(os)
except ImportError:
    pass
if getattr(os.system, "__wrapped__", os.system)("true") != 0:
    raise OSError("no shell ran")
