"""Loads what code may use besides the standard modules, since a sealed worker cannot open files. Each MB makes every fork slower."""

import gc


def preload(modules, packages, recipes):
    """Loads the modules and packages. Returns a description of each package. Raises ImportError if one of them fails."""
    if not modules and not packages:
        return []
    import lockhouse_packages  # Exists only in this case.

    return lockhouse_packages.load(modules, packages, recipes)


def freeze_memory():
    """Excludes all loaded objects from garbage collection, so that the collector does not touch their memory pages."""
    gc.collect()
    gc.freeze()
