# attack: change a mode
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

# The owner alone may change it, so the control changes a file of its own.
path = "{DIR}/file"
if not os.access(path, os.W_OK) or os.stat(path).st_uid != os.geteuid():
    open(path := "{DIR}/new", "w").close()
os.chmod(path, 0o700)
