# attack: remove a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

os.remove("{DIR}/removed")
