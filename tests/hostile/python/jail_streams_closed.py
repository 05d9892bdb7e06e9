# attack: close the streams
# outcome: ok 1
# control: none: there is no value outside

import sys

sys.stdout.close()
sys.stderr.detach()
sys.stdin = None
1
