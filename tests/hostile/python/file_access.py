# attack: ask whether a file may be read
# outcome: error it may not
# control: outside

import os

assert os.access("{DIR}/file", os.R_OK), "it may not"
