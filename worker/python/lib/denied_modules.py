"""Modules that the configuration denies to programs.

No protection: the kernel enforces the sandbox, and a program can find a loaded module in other ways. Lockhouse's own modules, the
standard library and packages go on to import whatever they need.
"""

import builtins
import functools
import importlib
import importlib.util
import sys


def install(names):
    """Called in the zygote, when everything is loaded: makes imports of these modules, and of those below them, fail in programs."""
    if not names:
        return
    loaded = {name.partition(".")[0] for name in sys.modules} - {"__main__", "skills"}
    trusted = loaded | set(sys.stdlib_module_names)

    def is_program(variables):
        importer = str(variables.get("__name__"))
        return importer != "skills" and importer.partition(".")[0] not in trusted

    def refuse(module):
        for name in names:
            if module == name or module.startswith(f"{name}."):
                raise ImportError(f"{module} cannot be imported: denied_modules of [python] in the configuration has {name!r}", name=module)

    import_any, import_module = builtins.__import__, importlib.import_module

    @functools.wraps(import_any)
    def checked_import(name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0 and isinstance(name, str) and is_program(sys._getframe(1).f_globals if globals is None else globals):
            refuse(name)
            for item in fromlist or ():
                refuse(f"{name}.{item}")
        return import_any(name, globals, locals, fromlist, level)

    @functools.wraps(import_module)
    def checked_import_module(name, package=None):
        if isinstance(name, str) and is_program(sys._getframe(1).f_globals):
            refuse(importlib.util.resolve_name(name, package) if package else name)
        return import_module(name, package)

    builtins.__import__ = importlib.__import__ = checked_import
    importlib.import_module = checked_import_module
