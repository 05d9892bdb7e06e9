"""Loads what code may use besides the standard modules, since a sealed worker cannot open files. Each MB makes every fork slower."""

import gc
import importlib
import io
import os
import sys

# Prevents libraries below packages such as numpy from starting a thread per core: a zygote must have one thread.
_THREADS = "OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS NUMEXPR_NUM_THREADS"
# Code that makes well-known packages load their lazily imported parts.
_FIRST_USES = {
    "numpy": "import numpy as n, numpy.random, numpy.linalg, numpy.fft\nstr(n.arange(3.0)); n.linalg.inv(n.eye(2))",
    "pandas": """
import io, pandas as p
f = p.read_csv(io.StringIO('a,b,t\\n1,x,2020-01-01\\n2,y,2020-01-02'), parse_dates=['t'])
str(f); f.describe(); f.groupby('b').agg({'a': 'sum'}); f.merge(f, on='a'); f.pivot_table(index='b', values='a')
f.to_csv(); f.to_json(); f.to_dict(orient='records'); f.set_index('t').resample('D').sum(numeric_only=True); f.dtypes
p.to_datetime(['2020-01-01']).tz_localize('UTC').tz_convert('Europe/Berlin'); f.info(buf=io.StringIO())
""",
}


def preload(extra):
    """Loads the modules in `extra`, and everything else that is read from files. Raises ImportError if one of the modules fails."""
    threads = dict.fromkeys(_THREADS.split(), "1")
    os.environ.update(threads)
    for name in extra:
        _load_extra(name)
    _use_once()
    for name in threads:
        del os.environ[name]
    _keep_zones()


def _load_extra(name):
    try:
        importlib.import_module(name)
    except BaseException as error:  # Any exception, including SystemExit, must be reported with the name of the package.
        raise ImportError(f"[python] preload: {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _use_once():
    for package, code in _FIRST_USES.items():
        if package in sys.modules:
            try:
                exec(code, {})
            except Exception:
                pass  # Only a warm-up: the package itself is loaded.


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
