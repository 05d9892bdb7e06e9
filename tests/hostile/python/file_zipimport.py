# attack: import from an archive on disk
# outcome: error not a Zip file
# control: outside

import io
import zipfile
import zipimport

archive = io.BytesIO()
with zipfile.ZipFile(archive, "w") as made:
    made.writestr("inside.py", "a = 1")
try:
    with open("{DIR}/new", "wb") as file:
        file.write(archive.getvalue())
except PermissionError:
    pass
zipimport.zipimporter("{DIR}/new").load_module("inside")
