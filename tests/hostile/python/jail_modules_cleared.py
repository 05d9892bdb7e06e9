# attack: forget every module
# outcome: ok 1
# control: none: there is no engine outside

import sys

sys.modules.clear()
1
