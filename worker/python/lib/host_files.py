"""Files of the host for the file system in memory, and files of the answer: both travel in pieces through the supervisor.

The supervisor decides about each file. What arrives with the program only saves questions about paths that it would refuse.
"""

import errno
import json
import re

import _lockhouse
import lockhouse_files as files
from lockhouse_files_store import HOST_PATH, is_below
from lockhouse_calls import calling_line

_WORKING = "/home/run/"
_STORED = "/home/run/lockhouse:/result/"  # What `open` makes of lockhouse://result/HANDLE.
_ERRNO = {"denied": errno.EACCES, "approval_declined": errno.EACCES, "rate_limited": errno.EACCES, "not_found": errno.ENOENT,
          "unknown_tool": errno.ENOENT, "result_too_large": errno.EFBIG, "timeout": errno.ETIMEDOUT, "invalid_arguments": errno.EINVAL}
# The name of the error at the end of a message, where the code does not say what it is.
_NAMED = re.compile(r" \((E[A-Z]+)\)$")


class _Access:
    """What a program may try to read, or to write."""

    def __init__(self, described=None):
        self.roots = tuple(described["roots"]) if described else ()
        self._refusal, self._elsewhere = (described["refusal"], described["elsewhere"]) if described else (None, None)

    def covers(self, path):
        return self._refusal is None and is_below(path, self.roots)

    def refusal(self, path):
        """Why a program may not use a path so; None if it may try."""
        return self._refusal if is_below(path, self.roots) else self._elsewhere or HOST_PATH


class _Files:
    """What the program of this run may try to open."""

    given = {}
    read = write = _Access()
    server = None
    made = set()  # Folders that are known to exist, since the program has made them.


def begin_run(text):
    """Takes over the description of the files that arrived with a program. Empty: there are none."""
    if not text and _Files.server is None and not _Files.given:
        return
    described = json.loads(text) if text else {}
    _Files.given = dict(described.get("given", ()))
    _Files.read, _Files.write = _Access(described.get("read")), _Access(described.get("write"))
    _Files.server, _Files.made = described.get("server"), set()
    files.set_host_places(_Files.read.roots + _Files.write.roots, described.get("home"))


def send_outputs():
    """Sends the files below /out to the supervisor, which reports those that it does not keep."""
    for name, content in files.outputs():
        try:
            _send("answer", name, content, name)
        except OSError:
            pass  # The answer of the supervisor says why.


def _failure(path, failure):
    code, message, *_ = failure
    named = _NAMED.search(message) if code == "tool_failed" else None
    if named is not None:
        return OSError(getattr(errno, named[1], errno.EIO), message[:named.start()], path)
    return OSError(_ERRNO.get(code, errno.EIO), message, path)


def _reply(path, pair):
    is_ok, payload = pair
    if not is_ok:
        raise _failure(path, payload)
    return payload


def _source(path):
    """The kind and the name of a file that can be read; None if the path is of no such file."""
    if path.startswith(_STORED):
        return "stored", path[len(_STORED):]
    if path.startswith(_WORKING) and path[len(_WORKING):] in _Files.given:
        return "given", path[len(_WORKING):]
    return ("host", path) if _Files.read.covers(path) else None


def _open(path, source):
    opened = json.loads(_reply(path, _lockhouse.open_file(*source, calling_line())))
    return opened["file"], opened["bytes"]


def _call(tool, path):
    """Calls a tool of the server `files`. Raises OSError."""
    data = json.dumps({"path": path}).encode()
    return json.loads(_reply(path, _lockhouse.call(_Files.server, tool, data, None, calling_line())))["structured"]


def _facts(described):
    return described["kind"] == "folder", described["bytes"], described["modified"]


def _send(kind, name, content, path):
    created = json.loads(_reply(path, _lockhouse.create_file(kind, name, len(content), calling_line())))
    most, sent = created["piece"], 0
    with memoryview(content) as view:
        while True:
            piece = view[sent:sent + most]
            _reply(path, _lockhouse.write_piece(created["file"], bytes(piece)))
            sent += len(piece)
            if sent >= len(content):
                break
    if kind == "host":  # Decided about now that the supervisor has the whole content.
        _reply(path, _lockhouse.finish_file(created["file"], calling_line()))


class _Host:
    """The files of the host for `lockhouse_files`."""

    def fetch(self, path):
        source = _source(path)
        if source is None:
            return None
        number, size = _open(path, source)
        files.require_space(size)
        content = bytearray()
        while True:
            piece = _reply(path, _lockhouse.read_piece(number))
            if not piece:
                return content
            content += piece

    def stat(self, path):
        if path.startswith(_WORKING) and path[len(_WORKING):] in _Files.given:
            return False, _Files.given[path[len(_WORKING):]], 0.0
        if path in _Files.made:
            return True, 0, 0.0
        if not _Files.read.covers(path):
            return None
        return _facts(_call("stat", path))

    def list(self, path):
        if not _Files.read.covers(path):
            return None
        listed = _call("list", path)
        if listed["cut"]:
            raise OSError(errno.EFBIG, f"the folder has more than {len(listed['entries']):,} entries, which is the limit", path)
        return [(entry["name"], _facts(entry), entry.get("target")) for entry in listed["entries"]]

    def is_given(self, path):
        return path.startswith(_WORKING) and path[len(_WORKING):] in _Files.given

    def may_save(self, path):
        return _Files.write.covers(path)

    def save(self, path, data):
        _send("host", path, data, path)

    def make_folder(self, path):
        if not _Files.write.covers(path):
            return None
        made = _call("mkdir", path)["created"]
        _Files.made.add(path)
        return made

    def refusal(self, path, writes):
        return (_Files.write if writes else _Files.read).refusal(path)


def install():
    files.set_host(_Host())
