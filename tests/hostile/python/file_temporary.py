# attack: make a temporary file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import tempfile

tempfile.TemporaryFile(dir="{DIR}").write(b"x")
