# attack: write output that no stream has
# outcome: ok 1
# control: none: there is no supervisor outside

import _lockhouse

_lockhouse.write(77, "\x1b]0;x\x07")
1
