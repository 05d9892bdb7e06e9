"""numpy: linear algebra and random numbers are imported at first use."""

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


def install():
    import io

    from numpy.lib import _datasource

    # Here numpy keeps the function with which loadtxt, genfromtxt and savetxt open paths.
    _datasource._file_openers._load()
    _datasource._file_openers._file_openers[None] = lambda *args, **named: io.open(*args, **named)
