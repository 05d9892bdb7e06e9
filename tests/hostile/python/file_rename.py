# attack: rename a file
# outcome: error not available in the Lockhouse sandbox: files cannot be opened
# control: outside

import os

os.rename("{DIR}/renamed", "{DIR}/again")
