"""Lets compiled functions, which open paths themselves, read and write files in memory: the path becomes a file object that Python has opened.

Executed only in zygotes with packages, for their recipes.
"""

import functools
import os


def read(owner, names, position=0, keyword="source"):
    """Replaces functions of `owner`, those of `names` that exist. They read the file at the argument `keyword`, or at this position."""
    _replace(owner, names, position, keyword, lambda path: open(path, "rb"), closes=False)


def write(owner, names, position, keyword, closes=True):
    """Does the same for functions that write a file. If they write after they have returned, `closes` must be false."""
    # Without a buffer, so that the content is complete at each moment.
    _replace(owner, names, position, keyword, lambda path: open(path, "wb", buffering=0), closes)


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
        path = holder[key] if holder is args else named.get(keyword)
        if not isinstance(path, (str, os.PathLike)):
            return function(*args, **named)
        holder[key] = file = opened(path)
        try:
            return function(*args, **named)
        finally:
            if closes:
                file.close()

    return with_file
