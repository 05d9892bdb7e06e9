# attack: copy a file
# outcome: error not available in the Lockhouse sandbox: files cannot be opened
# control: outside

import shutil

shutil.copyfile("{DIR}/file", "{DIR}/new")
