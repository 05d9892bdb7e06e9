# attack: find out which files exist
# outcome: error no file is there
# control: outside

import os

assert os.path.exists("{DIR}/file"), "no file is there"
