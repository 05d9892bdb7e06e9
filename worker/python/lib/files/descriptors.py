"""`os.open` and the functions on its numbers, for files in memory. The numbers are not descriptors of the process."""

import errno
import os

import lockhouse_files_open as streams
from lockhouse_files_status import status_of

_DESCRIPTORS_MAX = 1024

_original = {name: getattr(os, name) for name in "close read write lseek fstat ftruncate fsync fdatasync isatty".split()}
_count = 0


def open(path, flags, mode=0o777, *, dir_fd=None):
    """Opens a file in memory. Returns a number for the functions of this module, `os.fdopen` and `open`."""
    global _count
    if dir_fd is not None:
        raise PermissionError(errno.EPERM, "files in memory cannot be opened below a descriptor")
    closed = [number for number, raw in streams.descriptors.items() if raw.closed]
    for number in closed:
        del streams.descriptors[number]
    if len(streams.descriptors) >= _DESCRIPTORS_MAX:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), os.fspath(path))
    raw = streams.open_raw(os.fspath(path), flags, mode)
    _count += 1
    number = streams.DESCRIPTORS_START + _count
    streams.descriptors[number] = raw
    return number


def _on_descriptor(name, in_memory):
    """A function of `os` that takes a number: of a file in memory, or a descriptor of the process."""
    original = _original[name]

    def function(fd, *args):
        raw = streams.stream_of(fd) if isinstance(fd, int) else None
        return original(fd, *args) if raw is None else in_memory(raw, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = original.__doc__
    return function


def _close(raw):
    raw.close()


def _truncate(raw, length):
    raw.truncate(length)


_IN_MEMORY = {
    "close": _close,
    "read": lambda raw, count: raw.read(count),
    "write": lambda raw, data: raw.write(data),
    "lseek": lambda raw, position, whence: raw.seek(position, whence),
    "fstat": status_of,
    "ftruncate": _truncate,
    "fsync": lambda raw: None,
    "fdatasync": lambda raw: None,
    "isatty": lambda raw: False,
}
FUNCTIONS = {"open": open, **{name: _on_descriptor(name, function) for name, function in _IN_MEMORY.items()}}
