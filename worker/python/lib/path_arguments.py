"""Lets compiled functions, which open paths themselves, read and write files in memory: the path becomes a file object that Python has opened.

Executed only in zygotes with packages, for their recipes.
"""

import functools
import glob
import os


def read(owner, names, position=0, keyword="source", several=False):
    """Replaces functions of `owner`, those of `names` that exist. They read the file at the argument `keyword`, or at this position.
    With `several`, the argument may also be a list of paths, a pattern or a directory, and becomes a list of file objects.
    """
    _replace(owner, names, position, keyword, _open_several if several else _open_to_read, closes=False)


def write(owner, names, position, keyword, closes=True):
    """Does the same for functions that write a file. If they write after they have returned, `closes` must be false."""
    # Without a buffer, so that the content is complete at each moment.
    _replace(owner, names, position, keyword, lambda path: open(path, "wb", buffering=0) if _is_path(path) else None, closes)


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _open_to_read(path):
    return open(path, "rb") if _is_path(path) else None


def _open_several(paths):
    if isinstance(paths, (list, tuple)) and paths and all(map(_is_path, paths)):
        return [open(path, "rb") for path in paths]
    if not _is_path(paths):
        return None
    path = os.fspath(paths)
    if os.path.isdir(path):
        below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        return [open(file, "rb") for file in sorted(below)]
    if glob.has_magic(path):
        return [open(file, "rb") for file in sorted(glob.glob(path, recursive=True))] or open(path, "rb")
    return open(path, "rb")


def _replace(owner, names, position, keyword, opened, closes):
    for name in names.split():
        function = getattr(owner, name, None)
        if function is not None:
            setattr(owner, name, _with_file(function, position, keyword, opened, closes))


def _with_file(function, position, keyword, opened, closes):
    @functools.wraps(function)
    def with_file(*args, **named):
        args = list(args)
        holder, key = (args, position) if len(args) > position else (named, keyword)
        file = opened(holder[key] if holder is args else named.get(keyword))
        if file is None:
            return function(*args, **named)
        holder[key] = file
        try:
            return function(*args, **named)
        finally:
            if closes:
                file.close()

    return with_file
