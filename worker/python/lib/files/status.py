"""Status of files in memory, and lists of directories: `os.stat`, `os.listdir`, `os.scandir`."""

import errno
import os
import stat as modes

import lockhouse_files_host as host
import lockhouse_files_open as streams
import lockhouse_files_store as store
from lockhouse_files_nodes import Directory, File, ListedFile
from lockhouse_files_store import failure
from lockhouse_streams import PREFIX

DIRECTORY_DESCRIPTORS = f"{PREFIX}: directories in memory have no descriptors; use whole paths instead of dir_fd"
_DEVICE = 1

_original = {name: getattr(os, name) for name in ("stat", "listdir", "scandir")}


def require_no_descriptor(*descriptors):
    if any(descriptor is not None for descriptor in descriptors):
        raise PermissionError(errno.EPERM, DIRECTORY_DESCRIPTORS)


def existing(path):
    """The file or directory in memory at a path, for an operation that is not possible on the host."""
    place = store.locate(path)
    if place.node is None:
        raise store.refusal(path, writes=True) if place.is_host else failure(place.problem, path)
    if place.is_directory and not isinstance(place.node, Directory):
        raise failure(errno.ENOTDIR, path)
    return place.node


def stat(path, *, dir_fd=None, follow_symlinks=True):
    """Status of a file in memory or of the host. Links are followed; for those of the host, see `lstat`."""
    if isinstance(path, int):
        raw = streams.stream_of(path)
        return _original["stat"](path) if raw is None else status_of(raw)
    require_no_descriptor(dir_fd)
    place = store.locate(path)
    if place.node is None:
        known = host.status(place.path)
        if known is None:
            raise store.absence(path) if place.is_host else failure(place.problem, path)
        return _host_result(place.path, known)
    return status(existing(path))


def readable(path):
    """Status of a file in memory, or of one of the host that the program may read. Raises the refusal of another path."""
    if store.is_host_path(path) and store.reason(path) is not None:
        raise store.refusal(path)
    return stat(path)


def lstat(path, *, dir_fd=None):
    """Status of a file; of a link itself if it is one of the host in a folder that the program has listed.

    So os.walk and others that do not follow links do not walk through a link to a folder above it again and again.
    """
    return stat(path, dir_fd=dir_fd) if link_target(path) is None else _link_result(path)


def link_target(path):
    """Where a link of the host leads that is in a folder that the program has listed; None for other paths."""
    if not store.State.links or isinstance(path, int):
        return None
    place = store.locate(path)
    return store.State.links.get(place.path) if place.is_host and not place.is_directory else None


def _link_result(path):
    path = store.locate(path).path
    return _result(modes.S_IFLNK | 0o777, hash(path) & 0x7FFFFFFF, len(os.fsencode(store.State.links[path])), 0, 0)


def _host_result(path, known):
    is_directory, size, seconds = known
    mode = modes.S_IFDIR | 0o555 if is_directory else modes.S_IFREG | 0o444
    if host.may_save(path):
        mode |= 0o200
    return _result(mode, hash(path) & 0x7FFFFFFF, size, int(seconds * 1e9), int(seconds * 1e9))


def status(node):
    """The `os.stat_result` of a file or directory in memory, or of one of the host, which is that already."""
    if isinstance(node, os.stat_result):
        return node
    size = node.size() if isinstance(node, File) else 0
    return _result(node.mode, node.inode, size, node.accessed_ns, node.modified_ns)


def status_of(raw):
    """The `os.stat_result` of an open raw stream."""
    return status(raw.node) if isinstance(raw, streams.MemoryFile) else stat(store.NULL)


def _result(mode, inode, size, accessed_ns, modified_ns):
    times = (accessed_ns, modified_ns, modified_ns)
    named = {}
    for name, ns in zip(("st_atime", "st_mtime", "st_ctime"), times):
        named[name], named[f"{name}_ns"] = ns / 1e9, ns
    named["st_blksize"], named["st_blocks"] = 4096, (size + 511) // 512
    whole = (ns // 10**9 for ns in times)
    return os.stat_result((mode, inode, _DEVICE, 1, os.getuid(), os.getgid(), size, *whole), named)


def listdir(path="."):
    """Names in a directory, in no particular order."""
    if isinstance(path, int):
        return _original["listdir"](path)
    names = [name for name, _ in _entries(path)]
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def _entries(path):
    """Pairs of a name and its File or Directory, or its `os.stat_result` in a directory of the host."""
    path = "." if path is None else path
    place = store.locate(path)
    if place.node is None:
        entries = host.entries(place.path)
        if entries is None:
            raise store.missing_error(place, path)
        return [(name, _host_result(f"{place.path}/{name}", known)) for name, known in entries]
    node = existing(path)
    if not isinstance(node, Directory):
        raise failure(errno.ENOTDIR, path)
    return list(node.entries.items())


class DirEntry:
    """An entry of `os.scandir`."""

    __slots__ = ("name", "path", "_node")

    def __init__(self, name, path, node):
        self.name, self.path, self._node = name, path, node

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks=True):
        return modes.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks=True):
        return modes.S_ISREG(self._mode(follow_symlinks))

    def _mode(self, follow_symlinks):
        # The size of a file that shows a tool is known only when the tool has been described.
        if isinstance(self._node, ListedFile):
            return self._node.mode
        return self.stat(follow_symlinks=follow_symlinks).st_mode

    def is_symlink(self):
        return link_target(self.path) is not None

    def is_junction(self):
        return False

    def inode(self):
        return self.stat().st_ino

    def stat(self, *, follow_symlinks=True):
        return status(self._node) if follow_symlinks or not self.is_symlink() else _link_result(self.path)


class _Scan:
    """The iterator of `os.scandir`, which is also a context manager."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._entries = iter(())


def scandir(path="."):
    """Entries of a directory."""
    if isinstance(path, int):
        return _original["scandir"](path)
    folder = os.fspath("." if path is None else path)
    encode = os.fsencode if isinstance(folder, bytes) else str
    entries = [(encode(name), node) for name, node in _entries(path)]
    return _Scan(DirEntry(name, os.path.join(folder, name), node) for name, node in entries)
