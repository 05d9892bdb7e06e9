"""Access of the file system in memory to files of the host, through an object that asks the supervisor.

Without such an object, no path leads to the host. A file that was fetched stays in memory until the end of the run.
"""

import errno

import lockhouse_files_store as store
from lockhouse_files_nodes import Directory, File, Usage, require_space
from lockhouse_files_store import State, failure


class Host:
    """What an object for `set_host` offers. Paths are absolute and normal. Each method may raise OSError."""

    def fetch(self, path):
        """The content of a file of the host, as a bytearray, which the caller may keep, or bytes; None if the path is not its concern."""

    def stat(self, path):
        """Whether the path is a directory, its size in bytes, and its time of change in seconds; None as above."""

    def list(self, path):
        """The entries of a directory: a name, what `stat` returns, and the target of a link or None. None as above."""

    def is_given(self, path):
        """Whether the path in memory is one of a file that arrived with the program."""
        return False

    def may_save(self, path):
        """Whether a file can be written. Asked when a program opens it."""
        return False

    def save(self, path, data):
        """Writes the content of a file that a program has closed."""

    def make_folder(self, path):
        """Makes a folder in an existing one. Whether it is new; None if the program may not make it."""

    def refusal(self, path, writes):
        """Why a program may not read, or write, a path of the host; None if it may try."""


def set_host(host):
    """Installs the access to files of the host; None removes it."""
    State.host = host


def begin_run():
    """Forgets what the previous run of the session knew of files of the host."""
    State.links, State.saved = {}, set()
    if State.fetched:
        for file in State.fetched.values():
            file.linked = False
            file.release()
        State.fetched = {}


def fetch(path):
    """The file of the host at a path, as a File; None if there is none."""
    file = State.fetched.get(path)
    if file is None and State.host is not None:
        data = State.host.fetch(path)
        if data is not None:
            require_space(len(data))
            file = File(0o444)
            file.data = data if isinstance(data, bytearray) else bytearray(data)
            file.linked, file.changed = True, False
            Usage.bytes += len(data)
            State.fetched[path] = file
    return file


def status(path):
    """Whether a path of the host is a directory, its size and its time; None if it is unknown."""
    file = State.fetched.get(path)
    if file is not None:
        return False, len(file.data), file.modified_ns / 1e9
    try:
        return State.host.stat(path) if State.host is not None else None
    except FileNotFoundError:
        return None
    except PermissionError as error:
        State.last_refusal = path, error.strerror
        return None


def entries(path):
    """Entries of a directory of the host: pairs of a name and what `status` returns; None if it is unknown."""
    try:
        listed = State.host.list(path) if State.host is not None else None
    except FileNotFoundError:
        return None
    except OSError as error:
        State.on_refusal(error.strerror)  # Libraries hide it.
        raise
    if listed is None:
        return None
    prefix = path.rstrip("/")
    for name, _, target in listed:
        State.links.pop(f"{prefix}/{name}", None)
        if target is not None:
            State.links[f"{prefix}/{name}"] = target
    return [(name, known) for name, known, _ in listed]


def exists(path):
    """Whether a file of the host exists that the program may read. Raises OSError if it may not know."""
    try:
        known = State.host.stat(path)
    except FileNotFoundError:
        return False
    if known is None:
        raise store.refusal(path)
    return True


def content_of(path):
    """The content of a file of the host that a program changes in part; None if there is no such file."""
    try:
        file = fetch(path)
    except FileNotFoundError:
        return None
    if file is None:
        raise store.refusal(path)
    return file.data


def make_folder(path):
    """Makes a folder of the host. Whether it is new; None if the program may not make it."""
    return State.host.make_folder(path) if State.host is not None else None


def may_save(path):
    """Whether the program may write a file of the host."""
    return State.host is not None and State.host.may_save(path)


def keeps_attributes(path):
    """Whether a file or folder of the host exists that the program may write. The host keeps its mode and its times.

    A file that the program has written exists, also if the program may not ask for it.
    """
    return may_save(path) and (path in State.saved or status(path) is not None)


def save(path, data):
    """Writes a file of the host, which replaces the fetched one."""
    fetched = State.fetched.pop(path, None)
    if fetched is not None:
        fetched.linked = False
        fetched.release()
    State.host.save(path, data)
    State.saved.add(path)


def existing_file(place, given):
    """The File at a place that a program wants to read, in memory or from the host."""
    node = place.node
    if node is None:
        node = fetch(place.path)
        if node is None:
            raise store.missing_error(place, given)
    if isinstance(node, Directory):
        raise failure(errno.EISDIR, given)
    if place.is_directory:
        raise failure(errno.ENOTDIR, given)
    return node
