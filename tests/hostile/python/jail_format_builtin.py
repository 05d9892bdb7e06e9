# attack: reach the built-ins by formatting text, and call what is there
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

class Text(str):
    def __format__(self, kind):
        return str(__builtins__)


"{0.__class__.__base__}".format(Text())
__import__("posix").open("{DIR}/file", 0)
