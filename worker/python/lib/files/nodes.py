"""The directories and files of the file system in memory, and the space that they take."""

import errno
import os
import stat
import time

import _lockhouse

# Bound here, because the program can replace it.
now = time.time_ns
_strerror = os.strerror


class Usage:
    """What the file system contains now."""

    bytes = entries = 0


def bytes_max():
    """The maximum size of all files together, in bytes: half of the worker's memory."""
    return _lockhouse.memory_bytes() // 2


def require_space(count):
    """Raises OSError if `count` more bytes exceed the limit."""
    if count > 0 and Usage.bytes + count > bytes_max():
        words = f"{_strerror(errno.ENOSPC)}: all files in memory together have at most {bytes_max():,} bytes"
        raise OSError(errno.ENOSPC, words)


class Node:
    """What has a name in a directory."""

    __slots__ = ("inode", "mode", "modified_ns", "accessed_ns", "__weakref__")
    inodes = 1
    is_listed = False  # Whether it is part of a tree that shows something else, and cannot be changed.

    def __init__(self, mode):
        Node.inodes += 1
        self.inode, self.mode = Node.inodes, mode
        self.modified_ns = self.accessed_ns = now()


class Directory(Node):
    """A directory. The entries of one that is `fixed` never change: every other path below it is a path of the host."""

    __slots__ = ("entries", "fixed")

    def __init__(self, mode=0o755, fixed=False, **entries):
        super().__init__(stat.S_IFDIR | mode & 0o7777)
        self.entries, self.fixed = entries, fixed

    def find(self, name):
        """The entry of this name, or None."""
        return self.entries.get(name)


class Listing(Directory):
    """A directory whose entries are found when a program looks at them, and cannot be changed.

    `listed` returns pairs of a name and its node, and `found` the node of a name, or None. Both may raise OSError.
    """

    __slots__ = ("_listed", "_found")
    is_listed = True
    fixed = False

    def __init__(self, listed, found):
        Node.__init__(self, stat.S_IFDIR | 0o555)
        self._listed, self._found = listed, found

    @property
    def entries(self):
        return dict(self._listed())

    def find(self, name):
        return self._found(name)


class File(Node):
    """A regular file. `refresh` is None, or a function that updates `data` before it is read."""

    __slots__ = ("data", "opened", "linked", "changed", "refresh")

    def __init__(self, mode=0o644):
        super().__init__(stat.S_IFREG | mode & 0o7777)
        self.data, self.opened, self.linked, self.changed, self.refresh = bytearray(), 0, False, True, None

    def content(self):
        """The bytes of the file, as they are now."""
        if self.refresh is not None:
            self.refresh()
        return self.data

    def size(self):
        """The size in bytes."""
        try:
            return len(self.content())
        except OSError:  # A transaction of a database is open: the size before it.
            return len(self.data)

    def replace(self, data):
        """Replaces the whole content by a bytearray. Raises OSError if there is no space."""
        growth = len(data) - len(self.data)
        require_space(growth)
        self.data = data
        Usage.bytes += growth
        self.touch()

    def touch(self):
        """Notes that the content has changed."""
        self.modified_ns, self.changed = now(), True

    def write_at(self, position, data):
        """Writes bytes at a position; a gap before it becomes zeros. Raises OSError if there is no space."""
        end = position + len(data)
        if end > len(self.data):
            require_space(end - len(self.data))
            if position > len(self.data):
                self.resize(position)
        growth = max(0, end - len(self.data))
        self.data[position:end] = data
        Usage.bytes += growth
        self.touch()

    def resize(self, size):
        """Cuts the file, or extends it with zeros. Raises OSError if there is no space."""
        growth = size - len(self.data)
        require_space(growth)
        if growth > 0:
            self.data.extend(bytes(growth))
        else:
            del self.data[size:]
        Usage.bytes += growth
        self.touch()

    def release(self):
        """Frees the space of a file that has neither a name nor a user."""
        if not self.linked and not self.opened:
            Usage.bytes -= len(self.data)
            self.data, self.refresh = bytearray(), None


class ListedFile(File):
    """A file of a `Listing`. `text` returns its content when it is first read, and may raise OSError."""

    __slots__ = ("_text",)
    is_listed = True

    def __init__(self, text):
        super().__init__(0o444)
        self._text, self.refresh, self.linked = text, self._fill, True

    def _fill(self):
        if self._text is not None:
            self.data, self._text = bytearray(self._text().encode("utf-8", "replace")), None


class NullDevice(Node):
    """`/dev/null`."""

    __slots__ = ()

    def __init__(self):
        super().__init__(stat.S_IFCHR | 0o666)
