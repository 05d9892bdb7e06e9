# attack: read a file with io.FileIO
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import io

io.FileIO("{DIR}/file").read()
