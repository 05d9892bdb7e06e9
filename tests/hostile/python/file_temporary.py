# attack: make a temporary file
# outcome: error not available in the Lockhouse sandbox: there are no temporary files
# control: outside

import tempfile

tempfile.TemporaryFile().write(b"x")
