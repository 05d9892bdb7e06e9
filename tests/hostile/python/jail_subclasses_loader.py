# attack: read a file through the importer's own loader
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import importlib._bootstrap_external

kinds = [c for c in object.__subclasses__() if c.__name__ == "FileLoader"]
kinds[0].get_data(kinds[0]("x", "{DIR}/file"), "{DIR}/file")
