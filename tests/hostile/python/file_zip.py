# attack: write an archive
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import zipfile

with zipfile.ZipFile("{DIR}/new", "w") as archive:
    archive.writestr("x", "x")
