# attack: replace what shows values
# outcome: ok 7
# control: none: there is no value outside

import builtins
import sys

sys.displayhook = builtins.repr = lambda *arguments: "forged"
7
