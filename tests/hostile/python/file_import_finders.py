# attack: put back the finders that import from files
# outcome: error No module named 'this'
# outcome with packages: ok null
# control: outside

import importlib.machinery
import sys

sys.meta_path.append(importlib.machinery.PathFinder)
sys.path.insert(0, "/usr/lib/python3/dist-packages")
import this
