# attack: call without brackets
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import posix

posix_open = lambda path: posix.open(path, 0)


@posix_open
@(lambda _: "{DIR}/file")
class Path:
    pass
