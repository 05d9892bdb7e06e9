# attack: put back what was taken from the built-ins
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import builtins
import importlib

importlib.reload(builtins)
builtins.open("{DIR}/file").read()
