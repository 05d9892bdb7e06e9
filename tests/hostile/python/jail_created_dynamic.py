# attack: load a native module by the function below the importer
# outcome: error cannot open shared object file: Operation not permitted
# control: outside

import _imp
import importlib.machinery
import sysconfig

# Any file will do: what is asked is whether it is opened.
spec = importlib.machinery.ModuleSpec("planted", None, origin="{DIR}/file")
try:
    _imp.create_dynamic(spec)
except ImportError as error:
    assert "invalid ELF header" in str(error) or "too short" in str(error), error
