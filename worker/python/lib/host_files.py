"""Files of the host for the file system in memory, and files of the answer: both travel in pieces through the supervisor.

The supervisor decides about each file. What arrives with the program only saves questions about paths that it would refuse.
"""

import errno
import json

import _lockhouse
import lockhouse_files as files
from lockhouse_calls import calling_line

_WORKING = "/home/run/"
_STORED = "/home/run/lockhouse:/result/"  # What `open` makes of lockhouse://result/HANDLE.
_ERRNO = {"denied": errno.EACCES, "approval_declined": errno.EACCES, "rate_limited": errno.EACCES, "not_found": errno.ENOENT,
          "unknown_tool": errno.ENOENT, "result_too_large": errno.EFBIG, "timeout": errno.ETIMEDOUT, "invalid_arguments": errno.EINVAL}


class _Files:
    """What the program of this run may try to open."""

    given = {}
    read = ()
    write = ()
    advice = None
    server = None


def begin_run(text):
    """Takes over the description of the files that arrived with a program. Empty: there are none."""
    if not text and _Files.server is None and not _Files.given:
        return
    described = json.loads(text) if text else {}
    _Files.given = dict(described.get("given", ()))
    _Files.read, _Files.write = tuple(described.get("read", ())), tuple(described.get("write", ()))
    _Files.advice, _Files.server = described.get("advice"), described.get("server")


def send_outputs():
    """Sends the files below /out to the supervisor, which reports those that it does not keep."""
    for name, content in files.outputs():
        try:
            _send("answer", name, content, name)
        except OSError:
            pass  # The answer of the supervisor says why.


def _failure(path, failure):
    code, message, *_ = failure
    return OSError(_ERRNO.get(code, errno.EIO), message, path)


def _reply(path, pair):
    is_ok, payload = pair
    if not is_ok:
        raise _failure(path, payload)
    return payload


def _is_below(path, roots):
    return any(path == root or path.startswith(root if root.endswith("/") else root + "/") for root in roots)


def _source(path):
    """The kind and the name of a file that can be read; None if the path is of no such file."""
    if path.startswith(_STORED):
        return "stored", path[len(_STORED):]
    if path.startswith(_WORKING) and path[len(_WORKING):] in _Files.given:
        return "given", path[len(_WORKING):]
    return ("host", path) if _is_below(path, _Files.read) else None


def _open(path, source):
    opened = json.loads(_reply(path, _lockhouse.open_file(*source, calling_line())))
    return opened["file"], opened["bytes"]


def _call(tool, path):
    """Calls a tool of the server `files`; None if there is no such file or the program may not see it."""
    is_ok, payload = _lockhouse.call(_Files.server, tool, json.dumps({"path": path}).encode(), None, calling_line())
    if is_ok:
        return json.loads(payload)["structured"]
    if payload[0] in ("not_found", "denied", "unknown_tool"):
        return None
    raise _failure(path, payload)


def _send(kind, name, content, path):
    created = json.loads(_reply(path, _lockhouse.create_file(kind, name, len(content), calling_line())))
    most, sent = created["piece"], 0
    with memoryview(content) as view:
        while True:
            piece = view[sent:sent + most]
            _reply(path, _lockhouse.write_piece(created["file"], bytes(piece)))
            sent += len(piece)
            if sent >= len(content):
                return


class _Host:
    """The files of the host for `lockhouse_files`."""

    def fetch(self, path):
        source = _source(path)
        if source is None:
            return self._refuse(path)
        number, size = _open(path, source)
        files.require_space(size)
        content = bytearray()
        while True:
            piece = _reply(path, _lockhouse.read_piece(number))
            if not piece:
                return content
            content += piece

    def _refuse(self, path):
        if _Files.advice is None or path.startswith(("/home/run/", "/out/", "/tmp/")):
            return None
        raise PermissionError(errno.EACCES, _Files.advice, path)

    def stat(self, path):
        if path.startswith(_WORKING) and path[len(_WORKING):] in _Files.given:
            return False, _Files.given[path[len(_WORKING):]], 0.0
        if not _is_below(path, _Files.read):
            return None
        facts = _call("stat", path)
        return facts and (facts["kind"] == "folder", facts["bytes"], facts["modified"])

    def list(self, path):
        if not _is_below(path, _Files.read):
            return None
        listed = _call("list", path)
        return listed and [entry["name"] for entry in listed["entries"]]

    def may_save(self, path):
        if not _is_below(path, _Files.write) and _Files.advice is not None:
            raise PermissionError(errno.EACCES, _Files.advice, path)
        return _is_below(path, _Files.write)

    def save(self, path, data):
        _send("host", path, data, path)
        return True


def install():
    files.set_host(_Host())
