"""numpy: linear algebra and random numbers are imported at first use."""

import functools
import os

MODULES = "numpy.random numpy.linalg numpy.fft numpy.polynomial numpy.ma numpy.testing numpy.rec numpy.lib.recfunctions"


def rehearse():
    import io

    import numpy

    buffer = io.BytesIO()
    numpy.save(buffer, numpy.arange(3))
    numpy.load(io.BytesIO(buffer.getvalue()))
    numpy.savez_compressed(io.BytesIO(), a=numpy.arange(3))
    numpy.loadtxt(io.StringIO("1 2\n3 4"))
    numpy.genfromtxt(io.StringIO("1,2\n3,4"), delimiter=",")
    numpy.savetxt(io.StringIO(), numpy.eye(2))


def first_use():
    import numpy

    str(numpy.arange(3.0))
    numpy.linalg.inv(numpy.eye(2))
    numpy.linalg.lstsq(numpy.eye(2), numpy.ones(2), rcond=None)
    numpy.random.default_rng(1).normal(size=3)


def _load(load):
    @functools.wraps(load)
    def with_copy(file, mmap_mode=None, *args, **named):
        # A file in memory cannot be mapped. Whoever only reads it notices no difference.
        return load(file, None if mmap_mode in ("r", "c") else mmap_mode, *args, **named)

    return with_copy


def _from_file(from_file):
    @functools.wraps(from_file)
    def from_memory(file, dtype=float, count=-1, sep="", offset=0, **named):
        import numpy

        if sep:
            return from_file(file, dtype, count, sep, offset, **named)
        if isinstance(file, (str, os.PathLike)):
            with open(file, "rb") as opened:
                return from_memory(opened, dtype, count, sep, offset, **named)
        file.seek(offset, os.SEEK_CUR)
        data = file.read(-1 if count < 0 else count * numpy.dtype(dtype).itemsize)
        whole = len(data) - len(data) % numpy.dtype(dtype).itemsize
        return numpy.frombuffer(data[:whole], dtype).copy()

    return from_memory


def install():
    import io

    import numpy
    from numpy.lib import _datasource

    numpy.load, numpy.fromfile = _load(numpy.load), _from_file(numpy.fromfile)

    # Here numpy keeps the function with which loadtxt, genfromtxt and savetxt open paths.
    _datasource._file_openers._load()
    _datasource._file_openers._file_openers[None] = lambda *args, **named: io.open(*args, **named)
