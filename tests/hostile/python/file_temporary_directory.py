# attack: make a temporary directory where one is known
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import tempfile

tempfile.TemporaryDirectory(dir="{DIR}").cleanup()
