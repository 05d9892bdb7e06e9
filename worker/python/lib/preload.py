"""Loads what code may use besides the standard modules, since a sealed worker cannot open files. Each MB makes every fork slower."""

import gc
import importlib.util
import io
import os
import sys


def preload(modules, packages, recipes):
    """Loads the modules and packages, and everything else that is read from files. Returns a description of each package. Raises
    ImportError if one of them fails.
    """
    _keep_zones()
    if not modules and not packages:
        return []
    import lockhouse_packages  # Exists only in this case.

    return lockhouse_packages.load(modules, packages, recipes)


def _keep_zones():
    """Keeps all time zone files in memory, without duplicates: 0.5 MB. ZoneInfo parses them on first use."""
    import zoneinfo
    from zoneinfo import _common

    zones = _read_zones(next(filter(os.path.isdir, [*zoneinfo.TZPATH, _tzdata_folder()]), None))

    def load_tzdata(key):
        if key not in zones:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(zones[key])

    def available_timezones():
        """Names of all time zones."""
        return set(zones)

    if zones:
        _common.load_tzdata = load_tzdata
        zoneinfo.reset_tzpath(to=())
        zoneinfo.available_timezones = available_timezones


def _tzdata_folder():
    spec = importlib.util.find_spec("tzdata")
    return os.path.join(spec.submodule_search_locations[0], "zoneinfo") if spec else ""


def _read_zones(folder):
    zones, contents = {}, {}
    pending = [(folder, "")] if folder else []
    while pending:
        path, prefix = pending.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name not in ("posix", "right"):
                        pending.append((entry.path, f"{prefix}{entry.name}/"))
                elif "." not in entry.name and entry.name[0].isupper():
                    with open(entry.path, "rb", buffering=0) as file:
                        content = file.read()
                    if content[:4] == b"TZif":
                        zones[sys.intern(prefix + entry.name)] = contents.setdefault(content, content)
    return zones


def freeze_memory():
    """Excludes all loaded objects from garbage collection, so that the collector does not touch their memory pages."""
    gc.collect()
    gc.freeze()
