# attack: reach the raw file type through its bases
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import io

kind = next(c for c in io.RawIOBase.__subclasses__() + io._io._RawIOBase.__subclasses__() if c.__name__ == "FileIO")
kind("{DIR}/file").read()
