"""Files in memory: installs the file system for programs, and connects it with the files of the host and the outputs of a run."""

import glob
import io
import os
import pathlib
import shutil
import sys
import tempfile
from types import ModuleType

import lockhouse_files_databases as databases
import lockhouse_files_descriptors as descriptors
import lockhouse_files_host as host
import lockhouse_files_nodes as nodes
import lockhouse_files_open as streams
import lockhouse_files_os as os_functions
import lockhouse_files_store as store

HOST_PATH = store.HOST_PATH
begin_run = host.begin_run
require_space = nodes.require_space
save_all = streams.save_all
set_host = host.set_host
set_host_places = store.set_host_places
set_servers = store.set_servers

# Classes that keep functions of `os` and `io` as attributes or default values, in some versions of Python.
_KEEPERS = ((pathlib, "_NormalAccessor"), (glob, "_Globber"), (glob, "_StringGlobber"), (tempfile, "_TemporaryFileCloser"))


def install():
    """Replaces `open` and the functions of `os` on paths, wherever loaded modules refer to them."""
    replaced = {io.open: streams.open, os.path.expanduser: os_functions.expanduser}
    for functions in (os_functions.FUNCTIONS, descriptors.FUNCTIONS):
        replaced.update((getattr(os, name), function) for name, function in functions.items() if hasattr(os, name))
    if databases.sqlite3 is not None:
        replaced[databases.sqlite3.connect] = databases.connect
    by_identity = {id(original): function for original, function in replaced.items()}
    for name, module in list(sys.modules.items()):
        # `posix` and `_io` keep what the kernel refuses.
        if type(module) is ModuleType and name not in ("posix", "_io", "_sqlite3") and not name.startswith("lockhouse_"):
            _replace_in(module, by_identity)
    for module, name in _KEEPERS:
        if hasattr(module, name):
            _replace_in(getattr(module, name), by_identity)
    shutil._use_fd_functions = False
    tempfile.tempdir = store.TEMPORARY


def _replace_in(owner, by_identity):
    for name, value in list(vars(owner).items()):
        if isinstance(owner, type) and getattr(value, "__defaults__", None):
            value.__defaults__ = tuple(by_identity.get(id(default), default) for default in value.__defaults__)
        is_static = isinstance(value, staticmethod)
        function = by_identity.get(id(value.__func__ if is_static else value))
        if function is not None:
            setattr(owner, name, staticmethod(function) if isinstance(owner, type) else function)


def is_of_host(path):
    """Whether a path is one of the host, and the program may use some files of the host."""
    return store.locate(path).is_host and store.reason(path) is not HOST_PATH


def names_beside(path):
    """Names in the directory in memory in which a path would be."""
    try:
        parent = store.locate(path).parent
        return sorted(parent.entries) if parent is not None else []
    except OSError:  # The server is not available whose tools the directory would show.
        return []


def outputs():
    """Pairs of name and content of the files below /out that the program has written since the last call. The content is not a copy.

    Raises OSError if the buffers of open files cannot be written.
    """
    if not store.is_used():
        return []
    streams.flush_all()
    found = []
    for name, file in store.files_below(store.locate(store.OUT).node):
        content = file.content()
        if file.changed:
            file.changed = False
            found.append((os.fsencode(name).decode("utf-8", "replace"), content))
    return found
