# attack: copy a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import shutil

shutil.copyfile("{DIR}/file", "{DIR}/new")
