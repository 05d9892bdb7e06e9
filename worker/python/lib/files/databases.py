"""`sqlite3.connect(path)` for files in memory.

SQLite itself opens no file in a worker. A database of a file is a database in SQLite's own memory, which all connections to the
file share. It is read from the file when the first connection opens, and is written to the file when a connection closes and
when the program reads the file.
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
_OPEN_TRANSACTION = "a transaction of the database is open: call commit() or close() before the file is read"
_WRITE_AHEAD = slice(18, 20)  # The bytes of a database that say whether it needs a second file, which memory has not.
_URI_POSITION = 6
_connect = sqlite3 and sqlite3.connect
_live = {}  # The number of connections by file.
_classes = {}


class _FileConnection:
    """Part of a connection's class: writes the database to its file when the connection ends."""

    file = None

    def close(self):
        """Closes the connection, after its database is written to the file."""
        file, self.file = self.file, None
        try:
            if file is not None:
                if self.in_transaction:
                    self.rollback()
                _save(file, self)
        finally:
            super().close()
            if file is not None:
                _forget(file)

    def __del__(self):
        try:
            self.close()
        except Exception:
            pass  # The connection belongs to another thread, or is closed.


def _save(file, connection):
    content = bytearray(connection.serialize())
    if content != file.data:
        file.replace(content)


def _forget(file):
    _live[file] -= 1
    if not _live[file]:
        del _live[file]
        file.refresh = None
        file.opened -= 1
        file.release()


def connect(database, *args, **options):
    """Opens a database in a file in memory. The arguments are those of the language's own `sqlite3.connect`."""
    path, access = _path_of(database, args, options)
    if path is None:
        return _in_memory_only(_connect(database, *args, **options))
    if sys.version_info < (3, 11) or sqlite3.sqlite_version_info < (3, 36):
        raise sqlite3.NotSupportedError(_OLD_PYTHON)
    file = _file_at(path, access)
    connection = _connect_to(file, args, options)
    if access == "ro":
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
    place = store.locate(path)
    try:
        if place.node is None and access == "rwc" and not place.is_host:
            with streams.open(path, "xb"):
                pass
            return store.locate(path).node
        file = host.existing_file(place, path)
    except OSError as error:
        raise sqlite3.OperationalError(f"unable to open database file: {error}") from None
    if not isinstance(file, File):
        raise sqlite3.OperationalError("unable to open database file")
    return file


def _connect_to(file, args, options):
    base = options.pop("factory", args[4] if len(args) > 4 else sqlite3.Connection)
    kind = _classes.get(base)
    if kind is None:
        kind = _classes[base] = type(base.__name__, (_FileConnection, base), {"__doc__": base.__doc__})
    args = list(args)
    if len(args) > 4:
        args[4] = kind
    else:
        options["factory"] = kind
    if len(args) > _URI_POSITION:
        args[_URI_POSITION] = True
    else:
        options["uri"] = True
    content = bytes(file.content())
    connection = _in_memory_only(_connect(_address(file), *args, **options))
    if file not in _live:
        try:
            _load(content, connection)
        except BaseException:
            connection.close()
            raise
        _live[file] = 0
        file.opened += 1
        file.refresh = lambda: _refresh(file)
    _live[file] += 1
    connection.file = file
    return connection


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


def _refresh(file):
    """Updates a file from its database: what is committed."""
    reader = _connect(_address(file), timeout=0, uri=True)
    try:
        _save(file, reader)
    except sqlite3.OperationalError:
        raise OSError(errno.EBUSY, _OPEN_TRANSACTION) from None
    finally:
        reader.close()


def _in_memory_only(connection):
    """Keeps temporary tables and large sorts out of files."""
    sqlite3.Connection.execute(connection, "PRAGMA temp_store = MEMORY").close()
    return connection
