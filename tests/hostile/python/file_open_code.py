# attack: read a file as the importer does
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import io

io.open_code("{DIR}/file").read()
