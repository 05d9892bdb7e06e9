# attack: reach names through the attributes of an error
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

try:
    [].append.x
except AttributeError as error:
    names = error.obj.__self__.__class__.__base__.__subclasses__()
    loader = next(c for c in names if c.__name__ == "BuiltinImporter")
loader.load_module("posix").open("{DIR}/file", 0)
