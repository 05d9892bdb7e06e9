"""h5py: a file in memory is opened here, and not by HDF5."""

ALL_LIBRARIES = True
_MODES = {"r": "rb", "r+": "r+b", "w": "w+b", "w-": "x+b", "x": "x+b"}


def install():
    import os

    import h5py

    open_file = h5py.File.__init__

    def __init__(self, name, mode="r", *args, **named):
        if isinstance(name, (str, os.PathLike)) and mode in (*_MODES, "a"):
            if mode == "a":
                mode = "r+" if os.path.exists(name) else "w"
            name = open(name, _MODES[mode], buffering=0)
        open_file(self, name, mode, *args, **named)

    h5py.File.__init__ = __init__
