# attack: import a module a second time by the importer of built-in ones
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import importlib.machinery
import sys

del sys.modules["posix"]
posix = importlib.machinery.BuiltinImporter.load_module("posix")
if posix.fork() == 0:
    posix._exit(0)
posix.wait()
