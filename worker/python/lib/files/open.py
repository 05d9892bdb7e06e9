"""`open` for files in memory, and the raw stream below its buffers."""

import errno
import io
import os
import weakref

import lockhouse_files_host as host
import lockhouse_files_store as store
from lockhouse_files_nodes import Directory, File, NullDevice
from lockhouse_files_store import failure

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR
NO_DESCRIPTOR = ("fileno: this file is in memory and has no descriptor; pass its content instead, as from read(), "
                 "or the file object to code that needs none")

_open_files = io.open
# Streams for writing, which are flushed at the end of the run.
_written = weakref.WeakSet()
# Raw streams of files of the host for writing, which are saved at the end of the run at the latest.
_saved = weakref.WeakSet()
# Errors of files that were discarded without close(), which Python does not report.
_lost = []
# Raw streams by the number that `os.open` has returned. No number is one of a descriptor of the process.
descriptors = {}
DESCRIPTORS_START = 1 << 20


class MemoryFile(io.RawIOBase):
    """Raw stream of a file in memory, as `io.FileIO` is one of a file on disk."""

    def __init__(self, node, name, flags, saved_at=None):
        self.node, self.name, self.flags, self._saved_at, self._is_discarded = node, name, flags, saved_at, False
        self._appends = bool(flags & os.O_APPEND)
        self._position = len(node.content()) if self._appends else 0
        node.opened += 1
        if saved_at is not None:
            _saved.add(self)

    @property
    def mode(self):
        """The mode in the form of `io.FileIO`."""
        access = self.flags & _ACCESS
        first = "a" if self._appends else "x" if self.flags & os.O_EXCL else "r"
        if access == os.O_WRONLY:
            return "wb" if first == "r" else f"{first}b"
        return f"{first}b+" if access == os.O_RDWR else "rb"

    def readable(self):
        self._require_open()
        return self.flags & _ACCESS != os.O_WRONLY

    def writable(self):
        self._require_open()
        return self.flags & _ACCESS != os.O_RDONLY

    def seekable(self):
        self._require_open()
        return True

    def fileno(self):
        self._require_open()
        raise io.UnsupportedOperation(NO_DESCRIPTOR)

    def _require_open(self):
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def readinto(self, buffer):
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        with memoryview(buffer).cast("B") as target:
            piece = self.node.content()[self._position:self._position + len(target)]
            target[:len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def readall(self):
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        with memoryview(self.node.content()) as content:
            piece = bytes(content[self._position:])
        self._position += len(piece)
        return piece

    def write(self, data):
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        with memoryview(data).cast("B") as piece:
            if piece:
                if self._appends:
                    self._position = len(self.node.content())
                self.node.write_at(self._position, piece)
            self._position += len(piece)
            return len(piece)

    def seek(self, offset, whence=os.SEEK_SET):
        self._require_open()
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        start = (0, self._position, len(self.node.content()))[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = start + offset
        return self._position

    def tell(self):
        self._require_open()
        return self._position

    def truncate(self, size=None):
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        size = self._position if size is None else size
        if size < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if size != len(self.node.content()):
            self.node.resize(size)
        return size

    def close(self):
        if self.closed:
            return
        super().close()
        self.node.opened -= 1
        try:
            self.save()
        except OSError as error:
            if self._is_discarded:
                words = f"{error.strerror}; the program has discarded the file object without closing it"
                _lost.append(OSError(error.errno, words, error.filename))
            raise
        finally:
            self.node.release()

    def _dealloc_warn(self, source):
        """Called by the stream above this one if a program discards that stream without closing it."""
        self._is_discarded = True

    def __del__(self):
        self._is_discarded = True
        super().__del__()

    def save(self):
        """Writes a file of the host, if its content has changed since it was opened or saved."""
        if self._saved_at is not None and self.node.changed:
            self.node.changed = False
            host.save(self._saved_at, self.node.data)


class NullFile(io.RawIOBase):
    """Raw stream of `/dev/null`."""

    def __init__(self, name, flags):
        self.name, self.flags, self.mode = name, flags, "rb+"

    def readable(self):
        return self.flags & _ACCESS != os.O_WRONLY

    def writable(self):
        return self.flags & _ACCESS != os.O_RDONLY

    def readinto(self, buffer):
        return 0

    def write(self, data):
        with memoryview(data).cast("B") as piece:
            return len(piece)


def open_raw(path, flags, mode=0o666):
    """Opens a file with the flags of `os.open`. Returns its raw stream."""
    place = store.locate(path)
    writes = flags & _ACCESS != os.O_RDONLY
    if flags & os.O_CREAT:
        place = store.without_servers(place)
    if writes:
        store.require_unlisted(place, path)
    if isinstance(place.node, NullDevice):
        return NullFile(path, flags)
    if writes and place.is_host:
        return _open_to_save(place, path, flags)
    if flags & os.O_CREAT and place.is_directory and place.parent is not None:
        raise failure(errno.EISDIR, path)
    if flags & os.O_CREAT and place.node is None:
        return MemoryFile(_create(place, path, mode), path, flags)
    if flags & os.O_CREAT and flags & os.O_EXCL:
        raise failure(errno.EEXIST, path)
    if writes and isinstance(place.node, Directory):
        raise failure(errno.EISDIR, path)
    node = host.existing_file(place, path)
    if writes and place.node is None:  # A copy of a file of the host is not changed.
        raise failure(errno.EACCES, path)
    if flags & os.O_TRUNC and writes:
        node.resize(0)
    return MemoryFile(node, path, flags)


def _create(place, path, mode):
    node = File(mode & 0o755)
    store.add(place, node, path)
    return node


def _open_to_save(place, path, flags):
    """Opens a file of the host for writing: the content is passed on when the file is closed."""
    if not host.may_save(place.path):
        raise store.refusal(path, writes=True)
    if flags & os.O_EXCL and host.exists(place.path):
        raise failure(errno.EEXIST, path)
    before = None if flags & (os.O_TRUNC | os.O_EXCL) else host.content_of(place.path)
    if flags & os.O_CREAT == 0 and before is None and not flags & os.O_TRUNC:
        raise failure(errno.ENOENT, path)
    node = File()
    if before is not None:
        node.write_at(0, before)
        node.changed = False
    return MemoryFile(node, path, flags, place.path)


_MODES = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}


def _flags_of(mode):
    """The flags for a mode of `open`, and whether it is binary."""
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    letters = set(mode)
    if letters - set("rwxabt+") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    if {"b", "t"} <= letters:
        raise ValueError("can't have text and binary mode at once")
    kind = letters & set(_MODES)
    if len(kind) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    flags = _MODES[kind.pop()]
    return (flags & ~_ACCESS | os.O_RDWR if "+" in letters else flags), "b" in letters


def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    """Opens a file in memory. Arguments, streams and errors are those of the language's own `open`."""
    flags, is_binary = _flags_of(mode)
    if is_binary and not (encoding is errors is newline is None):
        name = "encoding" if encoding is not None else "errors" if errors is not None else "newline"
        raise ValueError(f"binary mode doesn't take {'a' if name[0] == 'n' else 'an'} {name} argument")
    if buffering == 0 and not is_binary:
        raise ValueError("can't have unbuffered text I/O")
    if isinstance(file, int):
        raw = _open_descriptor(file, closefd)
        if raw is None:  # A descriptor of the process, such as the end of a pipe.
            return _open_files(file, mode, buffering, encoding, errors, newline, closefd)
    elif not closefd:
        raise ValueError("Cannot use closefd=False with file name")
    elif opener is not None:
        return open(opener(file, flags), mode, buffering, encoding, errors, newline)
    else:
        raw = open_raw(os.fspath(file), flags)
    encoding = "utf-8" if encoding in (None, "locale") else encoding
    return _wrap(raw, mode, is_binary, buffering, (encoding, errors, newline))


def stream_of(number):
    """The raw stream of a number from `os.open`; None for a descriptor of the process."""
    if number < DESCRIPTORS_START:
        return None
    raw = descriptors.get(number)
    if raw is None or raw.closed:
        descriptors.pop(number, None)
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return raw


def _open_descriptor(number, closes):
    raw = stream_of(number)
    return raw if raw is None or closes or isinstance(raw, NullFile) else MemoryFile(raw.node, raw.name, raw.flags)


def _wrap(raw, mode, is_binary, buffering, text_options):
    """Puts the buffer and the decoder above a raw stream that the mode asks for."""
    try:
        if buffering == 0:
            stream = raw
        else:
            size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
            kind = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
            stream = kind(raw, size)
            if not is_binary:
                stream = io.TextIOWrapper(stream, *text_options, line_buffering=buffering == 1)
                stream.mode = mode
    except BaseException:
        raw.close()
        raise
    if raw.writable():
        _written.add(stream)
    return stream


def save_all():
    """Writes the files of the host that are still open, and raises the error of a file that was discarded and not written."""
    if not _saved and not _lost:
        return
    if _saved:
        flush_all()
    for raw in list(_saved):
        if not raw.closed:
            raw.save()
    if _lost:
        error = _lost[0]
        _lost.clear()
        raise error


def flush_all():
    """Writes what the buffers of open files contain. Raises OSError if there is no space."""
    for stream in list(_written):
        if not stream.closed:
            stream.flush()
