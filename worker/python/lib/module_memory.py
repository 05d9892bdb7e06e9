"""Keeps the Python modules of loaded packages in memory, as compiled code, so that a worker can import them after the seal.

Packages import parts of themselves when these are first used. Compiled modules (shared libraries) cannot be kept: the kernel maps
them from files only, so those must be imported before the seal.
"""

import importlib.util
import marshal
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec

# Maximum size of the compiled code of packages that is kept for later imports, in bytes (`_BYTES_MAX`), and number of its modules
# (`_MODULES_MAX`).
# Bound: workers and programs.
_BYTES_MAX = 96 * 1024 * 1024
_MODULES_MAX = 20_000
# Tests, and what installs packages.
_LEFT_OUT = {"tests", "test", "_tests", "__pycache__", "benchmarks", "conftest", "pip", "setuptools", "pkg_resources",
             "wheel", "_distutils_hack", "ensurepip", "idlelib", "lib2to3", "turtledemo", "distutils"}
_HEADER_BYTES = 16

_kept = {}
_deferred = {}


class ModuleMemoryFinder:
    """A finder in sys.meta_path: finds the modules that are kept in memory."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname in _deferred:
            module, start = _deferred.pop(fullname)
            spec = ModuleSpec(fullname, _DeferredLoader(module, start), origin=module.__file__, is_package=hasattr(module, "__path__"))
            spec.submodule_search_locations = getattr(module, "__path__", None)
            return spec
        found = _kept.get(fullname)
        if found is None:
            return None
        file, is_package, code = found
        spec = ModuleSpec(fullname, _Loader(code), origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec


class _Loader:
    def __init__(self, code):
        self.code = code

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(marshal.loads(self.code), module.__dict__)

    def get_source(self, fullname):
        return None


class _DeferredLoader:
    def __init__(self, module, start):
        self.module, self.start = module, start

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        self.start()


def defer(name, start):
    """Makes the import of a loaded module call `start` in the worker."""
    _deferred[name] = sys.modules.pop(name), start


def libraries_of(package, folder):
    """Names of the compiled modules below the folder of a package."""
    return [name for name, file, _ in _modules_in(folder, f"{package}.") if not file.endswith(".py")]


def collect(is_left_out):
    """Keeps the modules of the environment and of the standard library that are not loaded. `is_left_out` is a function of the name."""
    total = 0
    for fullname, file, is_package in _installed_modules(is_left_out):
        if fullname in sys.modules or fullname in _kept or fullname in _deferred or not file.endswith(".py"):
            continue
        code = _compiled(file)
        total += len(code or b"")
        if total > _BYTES_MAX or len(_kept) >= _MODULES_MAX:
            return
        if code is not None:
            _kept[fullname] = file, is_package, code


def _installed_modules(is_left_out):
    folders = [folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))]
    for folder in [*folders, os.path.dirname(os.__file__)]:
        for found in _modules_in(folder):
            if not is_left_out(found[0]):
                yield found


def _modules_in(folder, prefix=""):
    """Yields name, file and whether it is a package of each module below a folder."""
    pending = [(prefix, folder)]
    while pending:
        prefix, folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            stem, _, rest = entry.name.partition(".")
            if stem in _LEFT_OUT or not stem.isidentifier():
                continue
            if not rest and entry.is_dir():
                pending.append((f"{prefix}{stem}.", entry.path))
            elif rest == "py" and stem == "__init__" and prefix:
                yield prefix[:-1], entry.path, True
            elif rest == "py":
                yield prefix + stem, entry.path, False
            elif f".{rest}" in EXTENSION_SUFFIXES:
                yield prefix + stem, entry.path, False


def _compiled(file):
    """The marshalled code of a source file: from the cache that the installer wrote if it is up to date. None for a file with errors."""
    try:
        source = os.stat(file)
        with open(importlib.util.cache_from_source(file), "rb", buffering=0) as cached:
            data = cached.read()
        expected = b"".join(part.to_bytes(4, "little") for part in (0, int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF))
        if data[:4] == importlib.util.MAGIC_NUMBER and data[4:_HEADER_BYTES] == expected:
            return data[_HEADER_BYTES:]
    except OSError:
        pass
    try:
        with open(file, "rb") as source:
            return marshal.dumps(compile(source.read(), file, "exec", dont_inherit=True))
    except (OSError, SyntaxError, ValueError):
        return None
