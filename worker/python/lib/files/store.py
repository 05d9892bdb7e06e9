"""The file system in memory: directories and files of one process, which are one execution or one session.

It is no security boundary. The kernel refuses every file of the host, whatever this module does; the file system only gives
programs a place for their own files, and the errors that they know. Its limits keep it within the worker's memory.
"""

import errno
import os
from posixpath import normpath
from typing import NamedTuple, Optional

from lockhouse_files_nodes import Directory, File, Node, NullDevice, Usage, now
from lockhouse_streams import PREFIX

HOME = "/home/run"  # The working directory at the start.
OUT = "/out"
TEMPORARY = "/tmp"
MEMORY = (HOME, OUT, TEMPORARY)
NULL = "/dev/null"
SERVERS = "servers"  # The name of the tree of MCP servers in the working directory at the start, and in /.
# Maximum number of files and folders in memory.
# Bound: workers and programs.
ENTRIES_MAX = 10_000
NAME_BYTES_MAX = 255
PATH_BYTES_MAX = 4096
LEVELS_MAX = 64
HOST_PATH = f"{PREFIX}: files of the host cannot be opened; a program has files in memory: use a relative path instead"
READ_ONLY = ("the folder servers shows the tools of the MCP servers and cannot be changed; write to another folder, or make one of "
             "this name first: os.mkdir('servers')")
HOST_CHANGE = "files of the host can be read, listed and written as a whole, and folders can be made; nothing else is possible with them"

# Bound here, because the program can replace them.
_fspath, _fsdecode, _fsencode, _strerror = os.fspath, os.fsdecode, os.fsencode, os.strerror


class Place(NamedTuple):
    """Where a path leads. `node` is None if nothing is there; `parent` is None if its directory is missing, too."""

    path: str  # Absolute and normal.
    parent: Optional[Directory]
    node: Optional[Node]
    is_host: bool
    problem: int  # The error number if `node` is None.
    is_directory: bool  # The path ends with a slash.

    @property
    def name(self):
        return self.path.rpartition("/")[2]


class State:
    """State of the process that programs change."""

    directory = HOME
    host = None  # Access to files of the host; see `Host`.
    host_places = ()  # Paths of the host in directories that are in memory.
    last_refusal = (None, None)  # The path of the host that was refused last, and the reason.
    home = None  # The home directory of the host, for paths that begin with ~/.
    servers = None  # Makes the tree of MCP servers.
    fetched = {}  # Files of the host by path, until the end of the run.
    links = {}  # The targets of links of the host in the folders that the program has listed in this run, by path.
    saved = set()  # Paths of the files of the host that the program has written in this run.
    on_refusal = staticmethod(lambda words: None)


_root = Directory(
    fixed=True,
    home=Directory(fixed=True, run=Directory()),
    out=Directory(),
    tmp=Directory(0o1777),
    dev=Directory(fixed=True, null=NullDevice()),
)
_home = _root.entries["home"].entries["run"]


def failure(number, path, second=None):
    """The OSError of a failed operation; its class follows from the number."""
    return OSError(number, _strerror(number), _fspath(path), None, None if second is None else _fspath(second))


def refusal(path, writes=False):
    """The error for a path of the host that a program may not use so."""
    words = reason(path, writes) or HOST_CHANGE
    State.on_refusal(words)
    return PermissionError(errno.EPERM if words is HOST_PATH else errno.EACCES, words, _fspath(path))


def absence(path):
    """The error for the status of a path of the host: libraries that only look for a file go on without it."""
    words = reason(path)
    if words is None:
        return failure(errno.ENOENT, path)
    State.on_refusal(words)
    return FileNotFoundError(errno.ENOENT, words, _fspath(path))


def reason(path, writes=False):
    """Why a program may not read, or write, a path of the host; None if it may try."""
    normal = locate(path).path
    if State.last_refusal[0] == normal and not writes:
        return State.last_refusal[1]
    return HOST_PATH if State.host is None else State.host.refusal(normal, writes)


def is_used():
    """Whether the program has made any file or directory."""
    return Usage.entries > 0


def is_host_path(path):
    """Whether a path is one of the host."""
    try:
        return locate(path).is_host
    except (OSError, ValueError):
        return False


def os_text(path):
    """A path as text."""
    return _fsdecode(_fspath(path))


def text_of(path):
    """A path as text. Raises the errors of the language for paths that no file system accepts."""
    given, path = path, os_text(path)
    if "\0" in path:
        raise ValueError("embedded null byte")
    if not path:
        raise failure(errno.ENOENT, given)
    if State.home is not None and path.startswith("~/"):
        path = State.home + path[1:]
    encoded = _fsencode(path)
    if len(encoded) > PATH_BYTES_MAX or any(len(name) > NAME_BYTES_MAX for name in encoded.split(b"/")):
        raise failure(errno.ENAMETOOLONG, given)
    return path


def locate(path):
    """Finds the place of a path, without asking for files of the host."""
    path = text_of(path)
    whole = path if path[0] == "/" else f"{State.directory}/{path}"
    if State.host_places and is_below(_normal(whole), State.host_places):
        return Place(_normal(whole), None, None, True, errno.EPERM, path[-1] == "/")
    trail, names = [_root], []
    missing = 0
    for name in whole.split("/"):
        at = trail[-1]
        if name in ("", "."):
            continue
        if missing or not isinstance(at, Directory):
            missing = missing or errno.ENOTDIR
            break
        if name == "..":
            if names:
                trail.pop(), names.pop()
            continue
        names.append(name)
        node = at.find(name)
        if node is None and name == SERVERS:
            node = _servers(at)
        if node is None and at.fixed:
            return _locate_normal(whole)
        missing = errno.ENOENT if node is None else 0
        if not missing:
            trail.append(node)
    else:
        parent = trail[-1] if missing else (trail[-2] if names else None)
        node = None if missing else trail[-1]
        return Place("/" + "/".join(names), parent, node, False, missing, path.endswith(("/", "/.")))
    return Place(_normal(whole), None, None, False, missing, path[-1] == "/")


def _servers(directory):
    """The tree of MCP servers, if it is in this directory and no file of the host has its place."""
    if State.servers is None or directory is not _home and directory is not _root:
        return None
    if State.host is not None:
        path = f"/{SERVERS}" if directory is _root else f"{HOME}/{SERVERS}"
        if State.host.is_given(path) or directory is _root and State.host.refusal(path, False) is None:
            return None
    return State.servers()


def without_servers(place):
    """The place for something new, which may have the name of the tree of MCP servers, and hides it then."""
    is_hidden = place.node is not None and place.node.is_listed and place.parent is _home
    return place._replace(node=None, problem=errno.ENOENT) if is_hidden else place


def require_unlisted(place, given):
    """Raises an error if a place is in the tree of MCP servers."""
    if place.node is not None and place.node.is_listed or place.parent is not None and place.parent.is_listed:
        raise OSError(errno.EROFS, READ_ONLY, _fspath(given))


def is_below(path, roots):
    """Whether a normal path is one of the roots, or below one."""
    return any(path == root or path.startswith(root if root[-1] == "/" else root + "/") for root in roots)


def set_host_places(roots, home):
    """Sets the home directory of the host, and the paths of the host that programs may try to use."""
    State.home, State.last_refusal = home, (None, None)
    State.host_places = tuple(root for root in roots if is_below(root, MEMORY) and root not in MEMORY)


def set_servers(tree):
    """Sets the function that makes the tree of MCP servers."""
    State.servers = staticmethod(tree)


def _normal(path):
    return "/" + normpath(path).lstrip("/")


def _locate_normal(path):
    """Place of a path through a directory that does not exist in memory. `..` may lead back to one that does."""
    normal = _normal(path)
    node = _root
    for name in normal.split("/")[1:]:
        if not name or not isinstance(node, Directory) or not node.fixed:
            break
        node = node.entries.get(name) or (_servers(node) if name == SERVERS else None)
        if node is None:
            return Place(normal, None, None, True, errno.EPERM, path[-1] == "/")
    return locate(normal)


def missing_error(place, given):
    """The error for a path at which nothing is, or nothing that a program may use."""
    if place.is_host:
        return refusal(given) if reason(given) else failure(errno.ENOENT, given)
    return failure(place.problem, given)


def require_changeable(place, given):
    """Raises an error if nothing can be created, removed or replaced at a place."""
    if place.is_host:
        raise refusal(given, writes=True)
    require_unlisted(place, given)
    if place.parent is None or place.parent.fixed:
        raise failure(place.problem or errno.EBUSY, given)


def add(place, node, given):
    """Gives a file or directory its name. Nothing must be at the place."""
    require_changeable(place, given)
    if place.path.count("/") > LEVELS_MAX:
        raise failure(errno.ENAMETOOLONG, given)
    if Usage.entries >= ENTRIES_MAX:
        words = f"{_strerror(errno.ENOSPC)}: there are at most {ENTRIES_MAX:,} files and directories in memory"
        raise OSError(errno.ENOSPC, words, _fspath(given))
    Usage.entries += 1
    put(place, node)


def put(place, node):
    """Binds a name to a file or directory, which replaces what had this name."""
    place.parent.entries[place.name] = node
    place.parent.modified_ns = now()
    if isinstance(node, File):
        node.linked = True


def take(place):
    """Removes a name, and frees the space of a file that nobody has open."""
    del place.parent.entries[place.name]
    place.parent.modified_ns = now()
    drop(place.node)


def drop(node):
    """Forgets a file or directory that has lost its name."""
    Usage.entries -= 1
    if isinstance(node, File):
        node.linked = False
        node.release()


def files_below(directory):
    """Pairs of a relative path and a File, for all files below a Directory, in the order of their paths."""
    waiting, found = [("", directory)], []
    while waiting:
        prefix, directory = waiting.pop()
        for name, node in directory.entries.items():
            if isinstance(node, Directory):
                waiting.append((f"{prefix}{name}/", node))
            elif isinstance(node, File):
                found.append((prefix + name, node))
    return sorted(found, key=lambda pair: pair[0])
