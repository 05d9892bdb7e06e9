# attack: read a standard input that somebody left
# outcome: error nothing was there
# control: none: the input of a control is empty too

import os

data = os.read(0, 1)
assert data, "nothing was there"
