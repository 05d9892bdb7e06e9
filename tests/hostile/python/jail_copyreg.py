# attack: run a function when an object is copied
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import copy
import posix


class Bomb:
    def __deepcopy__(self, memo):
        return posix.open("{DIR}/file", 0)


copy.deepcopy(Bomb())
