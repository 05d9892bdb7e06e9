"""h5py: a file in memory is opened here, and not by HDF5."""

ALL_LIBRARIES = True
_DISK_DRIVERS = ("sec2", "stdio")
_MODES = {"r": "rb", "r+": "r+b", "w": "w+b", "w-": "x+b", "x": "x+b"}


def install():
    import io
    import os

    import h5py

    open_file = h5py.File.__init__

    def __init__(self, name, mode="r", driver=None, *args, **named):
        if driver == "core" or driver in _DISK_DRIVERS and isinstance(name, (str, os.PathLike)):
            driver = None  # All files are in memory.
            named.pop("block_size", None)
            if not named.pop("backing_store", True):
                name = io.BytesIO()
        if isinstance(name, (str, os.PathLike)) and mode in (*_MODES, "a"):
            if mode == "a":
                mode = "r+" if os.path.exists(name) else "w"
            name = open(name, _MODES[mode], buffering=0)
        open_file(self, name, mode, driver, *args, **named)

    def is_hdf5(fname):
        with open(fname, "rb") as file:
            return file.read(8) == b"\x89HDF\r\n\x1a\n"

    h5py.File.__init__ = __init__
    h5py.is_hdf5 = is_hdf5
