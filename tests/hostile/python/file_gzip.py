# attack: write a compressed file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import gzip

with gzip.open("{DIR}/new", "wb") as file:
    file.write(b"x")
