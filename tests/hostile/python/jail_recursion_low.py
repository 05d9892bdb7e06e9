# attack: leave the engine no depth to answer with
# outcome: ok 1
# control: none: there is no engine outside

import sys

sys.setrecursionlimit(sys._getframe().f_lineno + 1)
1
