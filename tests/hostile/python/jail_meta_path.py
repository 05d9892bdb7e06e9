# attack: put a finder before the engine's
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import importlib.machinery
import posix
import sys
import types


class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "planted" else None

    def create_module(self, spec):
        module = types.ModuleType("planted")
        module.open = posix.open
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
import planted

planted.open("{DIR}/file", 0)
