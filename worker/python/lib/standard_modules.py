"""Imports the standard modules and reads their time zones, since a sealed worker cannot open files. Meanwhile, a second process compiles Lockhouse's own modules."""

import gc
import importlib
import importlib.util
import io
import marshal
import os
import sys

# Exist in every CPython. Modules that these import lazily are listed as well.
_MODULES = """
json re math cmath datetime _strptime time calendar collections collections.abc itertools functools operator
statistics decimal fractions numbers random string textwrap csv io base64 binascii hashlib hmac uuid secrets
html html.parser html.entities urllib.parse unicodedata stringprep xml.etree.ElementTree xml.dom.minidom
xml.dom.expatbuilder zoneinfo difflib heapq bisect enum dataclasses typing types abc contextlib contextvars copy
copyreg pprint reprlib asyncio concurrent.futures concurrent.futures.thread threading queue weakref array struct
graphlib ipaddress locale keyword token tokenize ast inspect dis traceback linecache warnings logging shlex
fnmatch glob http pathlib os os.path sys signal tempfile shutil subprocess socket selectors configparser zlib gzip
zipfile tarfile filecmp fileinput pickle codecs timeit platform errno stat gc atexit builtins importlib importlib.util sched
"""
# Not available in every distribution or version.
_OPTIONAL = "sqlite3 sqlite3.dump mimetypes bz2 lzma tomllib string.templatelib annotationlib _ast_unparse _pylong compression.zstd"
_ENCODINGS = """
utf_8 utf_8_sig utf_16 utf_16_le utf_16_be utf_32 utf_32_le utf_32_be utf_7 ascii latin_1 iso8859_1 iso8859_2 iso8859_15
cp1250 cp1251 cp1252 cp437 cp850 mac_roman idna punycode unicode_escape raw_unicode_escape charmap
base64_codec hex_codec rot_13 quopri_codec zlib_codec bz2_codec
"""


def import_and_compile(sources):
    """Imports the standard modules. Returns the code of `sources`, pairs of file name and text."""
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except OSError:  # A limit of processes is reached.
        child = None
    if child == 0:
        os.close(reader)  # Otherwise this process would wait for ever for its own reading, if the first one is killed.
        _send_code(sources, writer)
    os.close(writer)
    _import_all()
    _keep_zones()
    gc.freeze()  # They stay in memory, so that no later collection need examine them.
    with open(reader, "rb") as pipe:
        data = pipe.read()
    if child is not None:
        os.waitpid(child, 0)
    return marshal.loads(data) if data else _compile(sources)


def _send_code(sources, writer):
    """Sends the code of `sources` from the second process, which then ends. Sends nothing if it fails."""
    try:
        data = marshal.dumps(_compile(sources))
        with open(writer, "wb", buffering=0) as pipe:
            while data:
                data = data[pipe.write(data):]
    finally:
        os._exit(0)


def _compile(sources):
    return [compile(text, file, "exec", dont_inherit=True) for file, text in sources]


def _import_all():
    _import_asyncio()
    _import_tarfile()
    for name in _MODULES.split():
        importlib.import_module(name)
    for name in [*_OPTIONAL.split(), *(f"encodings.{name}" for name in _ENCODINGS.split())]:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    "x".encode("idna")


def _import_tarfile():
    # tarfile works without the users and groups of the host.
    unknown = [name for name in ("pwd", "grp") if sys.modules.setdefault(name, None) is None]
    importlib.import_module("tarfile")
    for name in unknown:
        del sys.modules[name]


def _import_asyncio():
    # asyncio works without ssl. Loading OpenSSL would take a megabyte, and there is no network.
    without_ssl = sys.modules.setdefault("ssl", None) is None
    importlib.import_module("asyncio")
    if without_ssl:
        del sys.modules["ssl"]


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
