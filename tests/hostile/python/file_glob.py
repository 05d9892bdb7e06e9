# attack: find files by a pattern
# outcome: error nothing was found
# control: outside

import glob

assert glob.glob("{DIR}/*"), "nothing was found"
