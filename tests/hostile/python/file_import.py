# attack: import a module from a path
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import importlib.machinery
import importlib.util

loader = importlib.machinery.SourceFileLoader("planted", "{DIR}/file")
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("planted", loader))
loader.exec_module(module)
len(module.canary)
