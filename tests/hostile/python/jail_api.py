# attack: use the C API of the interpreter
# outcome: error it failed
# control: outside
# preload: ctypes

import ctypes

run = ctypes.pythonapi.PyRun_SimpleString
assert run(b"import posix\nposix.open('{DIR}/file', 0)") == 0, "it failed"
