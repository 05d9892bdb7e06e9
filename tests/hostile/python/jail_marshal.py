# attack: run a code object that was written by hand
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import marshal
import types

data = marshal.dumps(compile("import posix\nposix.open('{DIR}/file', 0)", "x", "exec"))
types.FunctionType(marshal.loads(data), {})()
