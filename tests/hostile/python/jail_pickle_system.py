# attack: run a shell by unpickling
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import pickle
import posix


class Bomb:
    def __reduce__(self):
        return posix.fork, ()


if pickle.loads(pickle.dumps(Bomb())) == 0:
    posix._exit(0)
posix.wait()
