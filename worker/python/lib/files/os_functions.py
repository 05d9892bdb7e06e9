"""The functions of `os` that change files in memory and the working directory."""

import errno
import os
import stat as modes

import lockhouse_files_host as host
import lockhouse_files_open as streams
import lockhouse_files_store as store
from lockhouse_files_nodes import Directory, File, NullDevice, now
from lockhouse_files_store import State, failure
from lockhouse_files_status import existing, link_target, listdir, lstat, readable, require_no_descriptor, scandir, stat
from lockhouse_streams import PREFIX

HOST_DIRECTORY = (f"{PREFIX}: a folder of the host cannot be the working directory; use whole paths, as from os.path.join(folder, name), "
                  "instead")
LINKS = f"{PREFIX}: files in memory have no links, owners and attributes; copy the file instead"

_original = {name: getattr(os, name) for name in ("truncate", "chmod", "utime", "chdir", "makedirs")}
_expand_user = os.path.expanduser


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    """Whether a file exists and may be used so."""
    require_no_descriptor(dir_fd)
    place = store.locate(path) if not isinstance(path, int) else None
    if place is not None and place.node is None:
        try:
            is_known = host.status(place.path) is not None
        except OSError:
            return False
        if not is_known:
            # Of a path that may be written but not read, nothing is known; but writing is what the caller asks about.
            return mode == os.W_OK and place.is_host and host.may_save(place.path) and store.reason(place.path) is not None
    found = stat(path)
    wanted = (0o444 if mode & os.R_OK else 0) | (0o222 if mode & os.W_OK else 0) | (0o111 if mode & os.X_OK else 0)
    return all(found.st_mode & wanted & digit for digit in (0o444, 0o222, 0o111) if wanted & digit)


def mkdir(path, mode=0o777, *, dir_fd=None):
    """Makes a directory."""
    require_no_descriptor(dir_fd)
    place = store.locate(path)
    made = host.make_folder(place.path) if place.is_host else None
    if made:
        return
    place = store.without_servers(place)
    if place.node is not None or made is False:
        raise failure(errno.EEXIST, path)
    store.add(place, Directory(mode & 0o755), path)


def makedirs(name, mode=0o777, exist_ok=False):
    """Makes a directory and those around it."""
    place = store.locate(name)
    if place.node is None and store.is_below(place.path, [f"{store.HOME}/{store.SERVERS}"]):
        root = store.without_servers(store.locate(f"{store.HOME}/{store.SERVERS}"))
        if root.node is None:
            store.add(root, Directory(mode & 0o755), name)
    if not place.is_host:
        return _original["makedirs"](name, mode, exist_ok)
    try:
        made = host.make_folder(place.path)  # Raises FileExistsError if a file has this name, which exist_ok does not excuse.
    except FileNotFoundError:
        makedirs(place.path.rpartition("/")[0] or "/", exist_ok=True)
        made = host.make_folder(place.path)
    if made is None:
        raise store.refusal(name, writes=True)
    if not made and not exist_ok:
        raise failure(errno.EEXIST, name)


def expanduser(path):
    """Replaces ~ by the home directory of the host, if the program may know files of the host."""
    text, home = os.fsdecode(path), store.State.home
    if home is None or text != "~" and not text.startswith("~/"):
        return _expand_user(path)
    return home + text[1:] if isinstance(os.fspath(path), str) else os.fsencode(home + text[1:])


def rmdir(path, *, dir_fd=None):
    """Removes an empty directory."""
    require_no_descriptor(dir_fd)
    node, place = existing(path), store.locate(path)
    if not isinstance(node, Directory):
        raise failure(errno.ENOTDIR, path)
    store.require_changeable(place, path)
    if node.entries:
        raise failure(errno.ENOTEMPTY, path)
    store.take(place)


def remove(path, *, dir_fd=None):
    """Removes a file."""
    require_no_descriptor(dir_fd)
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
    require_no_descriptor(src_dir_fd, dst_dir_fd)
    source, target = store.locate(src), store.without_servers(store.locate(dst))
    for place, given in (source, src), (target, dst):
        if place.is_host:
            raise store.refusal(given, writes=True)
        if place.node is None and place.parent is None:
            raise failure(place.problem, src, dst)
        store.require_unlisted(place, given)
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
    source.parent.modified_ns = now()
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


def truncate(path, length):
    """Cuts a file, or extends it with zeros."""
    if isinstance(path, int):
        raw = streams.stream_of(path)
        return _original["truncate"](path, length) if raw is None else raw.truncate(length) and None
    node = existing(path)
    store.require_unlisted(store.locate(path), path)
    if isinstance(node, Directory):
        raise failure(errno.EISDIR, path)
    if length < 0 or isinstance(node, NullDevice):
        raise failure(errno.EINVAL, path)
    if length != len(node.content()):
        node.resize(length)


def _is_kept_by_host(path):
    """Whether a path is of a file of the host that the program may write. shutil.copy and others set the mode and the times
    of each file that they have written; this has no effect there, and is no error.
    """
    place = store.locate(path)
    if not place.is_host or not host.may_save(place.path):
        return False
    if host.keeps_attributes(place.path):
        return True
    raise store.absence(path)


def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    """Sets the permission bits of a file. They are kept, but not enforced: all files are the program's own.

    Without effect for files of the host that the program may write.
    """
    if isinstance(path, int):
        return _original["chmod"](path, mode)
    require_no_descriptor(dir_fd)
    if _is_kept_by_host(path):
        return
    node = existing(path)
    store.require_unlisted(store.locate(path), path)
    node.mode = modes.S_IFMT(node.mode) | mode & 0o7777


def utime(path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    """Sets the times of a file. Without effect for files of the host that the program may write."""
    if isinstance(path, int):
        return _original["utime"](path, times) if ns is None else _original["utime"](path, ns=ns)
    require_no_descriptor(dir_fd)
    if times is not None and ns is not None:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    if _is_kept_by_host(path):
        return
    node = existing(path)
    store.require_unlisted(store.locate(path), path)
    if times is not None:
        ns = [int(seconds * 1_000_000_000) for seconds in times]
    node.accessed_ns, node.modified_ns = ns or (now(),) * 2


def getcwd():
    """The working directory."""
    return State.directory


def getcwdb():
    """The working directory, as bytes."""
    return os.fsencode(State.directory)


def chdir(path):
    """Changes the working directory."""
    if isinstance(path, int):
        return _original["chdir"](path)
    if store.is_host_path(path) and modes.S_ISDIR(readable(path).st_mode):
        raise PermissionError(errno.EACCES, HOST_DIRECTORY, os.fspath(path))
    if store.is_host_path(path) or not isinstance(existing(path), Directory):
        raise failure(errno.ENOTDIR, path)
    State.directory = store.locate(path).path


def readlink(path, *, dir_fd=None):
    """The target of a link of the host in a folder that the program has listed. Other paths are no links."""
    require_no_descriptor(dir_fd)
    target = link_target(path)
    if target is not None:
        return os.fsencode(target) if isinstance(path, bytes) else target
    readable(path)  # Raises the error of a path at which nothing is.
    raise failure(errno.EINVAL, path)


def listxattr(path=None, *, follow_symlinks=True):
    """Attributes of a file: none."""
    if path is None or isinstance(path, int):
        return []
    # shutil.copy2 asks for each file, after its status: another call of the server `files` would say nothing new.
    if not store.is_host_path(path) or store.reason(path) is not None:
        readable(path)
    return []


def _refuse_links(*args, **kwargs):
    path = args[0] if args and isinstance(args[0], (str, bytes, os.PathLike)) else None
    if path is not None and store.is_host_path(path):
        raise store.refusal(path, writes=True)
    raise PermissionError(errno.EPERM, LINKS, None if path is None else os.fspath(path))


symlink = link = chown = lchown = setxattr = removexattr = _refuse_links
FUNCTIONS = {
    function: globals()[function]
    for function in (
        "stat lstat access mkdir makedirs rmdir remove unlink rename replace listdir scandir truncate chmod utime getcwd getcwdb chdir "
        "readlink listxattr symlink link chown lchown setxattr removexattr").split()
}
