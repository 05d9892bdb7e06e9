# attack: change the mode of files to come
# outcome: error Errno
# control: outside

import os

os.umask(0)
