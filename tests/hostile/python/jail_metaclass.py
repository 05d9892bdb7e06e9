# attack: hide behind a metaclass whose names lie
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix


class Meta(type):
    __name__ = property(lambda cls: posix.open("{DIR}/file", 0))

    def __instancecheck__(cls, thing):
        return True


class Lies(Exception, metaclass=Meta):
    pass


Lies.__name__
