# attack: read a file with pathlib
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import pathlib

pathlib.Path("{DIR}/file").read_text()
