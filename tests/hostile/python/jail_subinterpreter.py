# attack: run code in an interpreter of its own, where nobody wrapped anything
# outcome: error No module named
# outcome: error Operation not permitted
# control: none: the module's name differs from version to version

import importlib

try:
    interpreters = importlib.import_module("_xxsubinterpreters")
except ImportError:
    interpreters = importlib.import_module("_interpreters")
interpreter = interpreters.create()
failed = interpreters.run_string(interpreter, "import posix\nposix.open('{DIR}/file', 0)")
raise PermissionError(str(failed))
