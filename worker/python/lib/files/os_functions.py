"""The functions of `os` on paths, for files in memory."""

import errno
import os
import stat as modes

import lockhouse_files_host as host
import lockhouse_files_open as streams
import lockhouse_files_store as store
from lockhouse_files_store import Directory, File, NullDevice, current, failure
from lockhouse_streams import PREFIX

LINKS = f"{PREFIX}: files in memory have no links, owners and attributes; copy the file instead"
DIRECTORY_DESCRIPTORS = f"{PREFIX}: directories in memory have no descriptors; use whole paths instead of dir_fd"
_DEVICE = 1

_original = {name: getattr(os, name) for name in ("stat", "listdir", "scandir", "truncate", "chmod", "utime", "chdir")}


def _require_no_descriptor(*descriptors):
    if any(descriptor is not None for descriptor in descriptors):
        raise PermissionError(errno.EPERM, DIRECTORY_DESCRIPTORS)


def existing(path):
    """The file or directory in memory at a path."""
    place = store.locate(path)
    if place.node is None:
        raise store.missing_error(place, path)
    if place.is_directory and not isinstance(place.node, Directory):
        raise failure(errno.ENOTDIR, path)
    return place.node


def stat(path, *, dir_fd=None, follow_symlinks=True):
    """Status of a file in memory; there are no links, so `lstat` is the same."""
    if isinstance(path, int):
        raw = streams.stream_of(path)
        return _original["stat"](path) if raw is None else status_of(raw)
    _require_no_descriptor(dir_fd)
    place = store.locate(path)
    if place.node is None:
        known = host.status(place.path)
        if known is None:
            raise store.missing_error(place, path)
        is_directory, size, seconds = known
        mode = modes.S_IFDIR | 0o555 if is_directory else modes.S_IFREG | 0o444
        return _result(mode, hash(place.path) & 0x7FFFFFFF, size, int(seconds * 1e9), int(seconds * 1e9))
    return status(existing(path))


def lstat(path, *, dir_fd=None):
    """Status of a file in memory."""
    return stat(path, dir_fd=dir_fd)


def status(node):
    """The `os.stat_result` of a file or directory in memory."""
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


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    """Whether a file exists and may be used so."""
    _require_no_descriptor(dir_fd)
    place = store.locate(path) if not isinstance(path, int) else None
    if place is not None and place.node is None and host.status(place.path) is None:
        return False
    found = stat(path)
    wanted = (0o444 if mode & os.R_OK else 0) | (0o222 if mode & os.W_OK else 0) | (0o111 if mode & os.X_OK else 0)
    return all(found.st_mode & wanted & digit for digit in (0o444, 0o222, 0o111) if wanted & digit)


def mkdir(path, mode=0o777, *, dir_fd=None):
    """Makes a directory."""
    _require_no_descriptor(dir_fd)
    place = store.locate(path)
    if place.node is not None:
        raise failure(errno.EEXIST, path)
    store.add(place, Directory(mode & 0o755), path)


def rmdir(path, *, dir_fd=None):
    """Removes an empty directory."""
    _require_no_descriptor(dir_fd)
    node, place = existing(path), store.locate(path)
    if not isinstance(node, Directory):
        raise failure(errno.ENOTDIR, path)
    store.require_changeable(place, path)
    if node.entries:
        raise failure(errno.ENOTEMPTY, path)
    store.take(place)


def remove(path, *, dir_fd=None):
    """Removes a file."""
    _require_no_descriptor(dir_fd)
    node, place = existing(path), store.locate(path)
    if isinstance(node, Directory):
        raise failure(errno.EISDIR, path)
    store.require_changeable(place, path)
    store.take(place)


def unlink(path, *, dir_fd=None):
    """Removes a file."""
    remove(path, dir_fd=dir_fd)


def rename(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
    """Renames a file or directory, and replaces a file or an empty directory of the new name."""
    _require_no_descriptor(src_dir_fd, dst_dir_fd)
    source, target = store.locate(src), store.locate(dst)
    for place, given in (source, src), (target, dst):
        if place.is_host:
            raise store.refusal(given)
        if place.node is None and place.parent is None:
            raise failure(place.problem, src, dst)
    node, before = source.node, target.node
    if node is None:
        raise failure(source.problem, src, dst)
    moves_directory = isinstance(node, Directory)
    if (source.is_directory or target.is_directory) and not moves_directory:
        raise failure(errno.ENOTDIR, src, dst)
    if source.path == target.path:
        return
    for place in (source, target):
        if place.parent is None or place.parent.fixed:
            raise failure(errno.EBUSY, src, dst)
    if moves_directory and target.path.startswith(f"{source.path}/"):
        raise failure(errno.EINVAL, src, dst)
    if isinstance(before, Directory) and source.path.startswith(f"{target.path}/"):
        raise failure(errno.ENOTEMPTY, src, dst)
    _require_replaceable(before, moves_directory, src, dst)
    _require_levels(node, target, dst)
    del source.parent.entries[source.name]
    source.parent.modified_ns = store.now()
    store.put(target, node)
    if isinstance(node, File):
        node.changed = True
    if before is not None:
        store.drop(before)


def _require_replaceable(before, by_directory, src, dst):
    if before is None:
        return
    if isinstance(before, Directory):
        if not by_directory:
            raise failure(errno.EISDIR, src, dst)
        if before.entries:
            raise failure(errno.ENOTEMPTY, src, dst)
    elif by_directory:
        raise failure(errno.ENOTDIR, src, dst)


def _require_levels(node, target, given):
    """Raises an error if a moved directory would reach below the last level."""
    waiting = [(node, target.path.count("/"))]
    while waiting:
        node, level = waiting.pop()
        if level > store.LEVELS_MAX:
            raise failure(errno.ENAMETOOLONG, given)
        if isinstance(node, Directory):
            waiting += [(inner, level + 1) for inner in node.entries.values()]


def replace(src, dst, *, src_dir_fd=None, dst_dir_fd=None):
    """As `rename`."""
    rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


def listdir(path="."):
    """Names in a directory, in no particular order."""
    if isinstance(path, int):
        return _original["listdir"](path)
    names = [name for name, _ in _entries(path)]
    return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def _entries(path):
    """Pairs of a name and its File or Directory, or None in a directory of the host."""
    path = "." if path is None else path
    place = store.locate(path)
    if place.node is None:
        names = host.names(place.path)
        if names is None:
            raise store.missing_error(place, path)
        return [(name, None) for name in names]
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
        return modes.S_ISDIR(self._mode())

    def is_file(self, *, follow_symlinks=True):
        return modes.S_ISREG(self._mode())

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def inode(self):
        return self.stat().st_ino

    def stat(self, *, follow_symlinks=True):
        return stat(self.path) if self._node is None else status(self._node)

    def _mode(self):
        return self.stat().st_mode if self._node is None else self._node.mode


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


def truncate(path, length):
    """Cuts a file, or extends it with zeros."""
    if isinstance(path, int):
        raw = streams.stream_of(path)
        return _original["truncate"](path, length) if raw is None else raw.truncate(length) and None
    node = existing(path)
    if isinstance(node, Directory):
        raise failure(errno.EISDIR, path)
    if length < 0 or isinstance(node, NullDevice):
        raise failure(errno.EINVAL, path)
    if length != len(node.content()):
        node.resize(length)


def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    """Sets the permission bits of a file. They are kept, but not enforced: all files are the program's own."""
    if isinstance(path, int):
        return _original["chmod"](path, mode)
    _require_no_descriptor(dir_fd)
    node = existing(path)
    node.mode = modes.S_IFMT(node.mode) | mode & 0o7777


def utime(path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    """Sets the times of a file."""
    if isinstance(path, int):
        return _original["utime"](path, times) if ns is None else _original["utime"](path, ns=ns)
    _require_no_descriptor(dir_fd)
    if times is not None and ns is not None:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    node = existing(path)
    if times is not None:
        ns = [int(seconds * 1_000_000_000) for seconds in times]
    node.accessed_ns, node.modified_ns = ns or (store.now(),) * 2


def getcwd():
    """The working directory."""
    return current.directory


def getcwdb():
    """The working directory, as bytes."""
    return os.fsencode(current.directory)


def chdir(path):
    """Changes the working directory."""
    if isinstance(path, int):
        return _original["chdir"](path)
    if not isinstance(existing(path), Directory):
        raise failure(errno.ENOTDIR, path)
    current.directory = store.locate(path).path


def readlink(path, *, dir_fd=None):
    """Raises the error for a path that is no link."""
    _require_no_descriptor(dir_fd)
    existing(path)
    raise failure(errno.EINVAL, path)


def listxattr(path=None, *, follow_symlinks=True):
    """Attributes of a file: none."""
    if not isinstance(path, int):
        existing("." if path is None else path)
    return []


def _refuse_links(*args, **kwargs):
    path = args[0] if args and isinstance(args[0], (str, bytes, os.PathLike)) else None
    if path is not None and store.is_host_path(path):
        raise store.refusal(path)
    raise PermissionError(errno.EPERM, LINKS, None if path is None else os.fspath(path))


symlink = link = chown = lchown = setxattr = removexattr = _refuse_links
FUNCTIONS = {
    function: globals()[function]
    for function in (
        "stat lstat access mkdir rmdir remove unlink rename replace listdir scandir truncate chmod utime getcwd getcwdb chdir "
        "readlink listxattr symlink link chown lchown setxattr removexattr").split()
}
