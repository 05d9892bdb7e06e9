"""`sqlite3.connect(path)` for files in memory.

SQLite itself opens no file in a worker. A database of a file is a database in SQLite's own memory, which all connections to the
file share. It is read from the file when the first connection opens, and is written to the file when a connection closes and
when the program reads the file. A connection of this module, the keeper, holds the database between the program's connections.
"""

import errno
import sys
from urllib.parse import parse_qs, unquote

import lockhouse_files_host as host
import lockhouse_files_open as streams
import lockhouse_files_store as store
from lockhouse_files_nodes import File
from lockhouse_streams import PREFIX

try:
    import sqlite3
except ImportError:  # Some distributions have it in a package of its own.
    sqlite3 = None

_OLD_PYTHON = (f"{PREFIX}: a database in a file needs Python 3.11 and SQLite 3.36, because SQLite opens no file here and its content "
               "must be loaded by deserialize(); use sqlite3.connect(':memory:') instead")
_HOST_PLACE = (f"{PREFIX}: SQLite works on a copy of a database of the host, and cannot make or change one there; make it in /tmp, "
               "close the connection, and copy it with shutil.copy instead")
_OPEN_TRANSACTION = "a transaction of the database is open: call commit() or close() before the file is read"
_WRITE_AHEAD = slice(18, 20)  # The bytes of a database that say whether it needs a second file, which memory has not.
_URI_POSITION = 6
_connect = sqlite3 and sqlite3.connect
_keepers = {}  # For each file with open connections, its keeper.
_counts = {}  # The number of the program's connections by file.
_classes = {}


class _FileConnection:
    """Part of a connection's class: writes the database to its file when the connection closes."""

    __slots__ = ()

    def close(self):
        """Closes the connection, and writes what is committed to the file."""
        super().close()
        file, self._file = getattr(self, "_file", None), None
        if file is not None:
            _close(file)

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass  # The connection belongs to another thread, or there is no space. The keeper still has the database.


def _close(file):
    _counts[file] -= 1
    is_last = not _counts[file]
    try:
        _refresh(file)
    except OSError:
        if is_last:
            raise
    finally:
        if is_last:
            del _counts[file]
            _keepers.pop(file).close()
            file.refresh = None
            file.opened -= 1
            file.release()


def _refresh(file):
    """Updates a file from its database: what is committed."""
    keeper = _keepers[file]
    try:
        pages = keeper.execute("PRAGMA page_count").fetchone()[0]
        content = bytearray(keeper.serialize() if pages else b"")
    except sqlite3.OperationalError:
        raise OSError(errno.EBUSY, _OPEN_TRANSACTION) from None
    if content != file.data:
        file.replace(content)


def connect(database, *args, **options):
    """Opens a database in a file in memory. The arguments are those of the language's own `sqlite3.connect`."""
    path, access = _path_of(database, args, options)
    if path is None:
        return _in_memory_only(_connect(database, *args, **options))
    if sys.version_info < (3, 11) or sqlite3.sqlite_version_info < (3, 36):
        raise sqlite3.NotSupportedError(_OLD_PYTHON)
    file, can_change = _file_at(path, access)
    connection = _connect_to(file, args, options)
    if access == "ro" or not can_change:
        connection.execute("PRAGMA query_only = 1")
    return connection


def _path_of(database, args, options):
    """The path of a database and its access; None for a database without a file."""
    path = store.os_text(database)
    is_uri = options.get("uri", args[_URI_POSITION] if len(args) > _URI_POSITION else False)
    access = "rwc"
    if is_uri and path.startswith("file:"):
        path, _, query = path[5:].partition("?")
        query = parse_qs(query.partition("#")[0])
        access = query.get("mode", ["rwc"])[-1]
        path = unquote(path[path.index("/", 2):] if path.startswith("//") and "/" in path[2:] else path)
        if access == "memory" or "vfs" in query:
            path = ""
    return (None, None) if path in ("", ":memory:") else (path, access)


def _file_at(path, access):
    """The File of a database, and whether the program may change it: not the copy of a file of the host."""
    place = store.locate(path)
    try:
        if place.node is None and access == "rwc" and not place.is_host:
            with streams.open(path, "xb"):
                pass
            place = store.locate(path)
        file = host.existing_file(place, path)
    except OSError as error:
        advice = f"; {_HOST_PLACE}" if place.is_host and host.may_save(place.path) else ""
        raise sqlite3.OperationalError(f"unable to open database file: {error}{advice}") from None
    if not isinstance(file, File):
        raise sqlite3.OperationalError("unable to open database file")
    return file, place.node is not None


def _connect_to(file, args, options):
    base = options.pop("factory", args[4] if len(args) > 4 else sqlite3.Connection)
    kind = _classes.get(base)
    if kind is None:
        kind = _classes[base] = type(base.__name__, (_FileConnection, base), {"__doc__": base.__doc__, "__slots__": ("_file",)})
    args = list(args)
    if len(args) > 4:
        args[4] = kind
    else:
        options["factory"] = kind
    if len(args) > _URI_POSITION:
        args[_URI_POSITION] = True
    else:
        options["uri"] = True
    _keep(file)
    try:
        connection = _in_memory_only(_connect(_address(file), *args, **options))
    except BaseException:
        _close(file)
        raise
    connection._file = file
    return connection


def _keep(file):
    """Counts one more connection to a file. The first one loads the database."""
    if file not in _keepers:
        keeper = _in_memory_only(_connect(_address(file), timeout=0, uri=True, check_same_thread=False, isolation_level=None))
        try:
            _load(bytes(file.data), keeper)
        except BaseException:
            keeper.close()
            raise
        _keepers[file], _counts[file] = keeper, 0
        file.opened += 1
        file.refresh = lambda: _refresh(file)
    _counts[file] += 1


def _address(file):
    # SQLite's connections to one name below "/" share one database.
    return f"file:/lockhouse/{file.inode}?vfs=memdb"


def _load(content, connection):
    if not content:
        return
    content = bytearray(content)
    if content[_WRITE_AHEAD] == b"\2\2":
        content[_WRITE_AHEAD] = b"\1\1"
    source = _connect(":memory:")
    try:
        source.deserialize(bytes(content))
        source.execute("SELECT count(*) FROM sqlite_master")
        source.backup(connection)
    finally:
        source.close()


def _in_memory_only(connection):
    """Keeps temporary tables and large sorts out of files."""
    sqlite3.Connection.execute(connection, "PRAGMA temp_store = MEMORY").close()
    return connection
