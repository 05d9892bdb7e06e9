"""scipy: subpackages are imported at first use, and have compiled modules."""

MODULES = """
scipy.cluster.hierarchy scipy.cluster.vq scipy.fft scipy.fftpack scipy.integrate scipy.interpolate scipy.io scipy.linalg
scipy.linalg.lapack scipy.ndimage scipy.odr scipy.optimize scipy.signal scipy.sparse scipy.sparse.linalg scipy.sparse.csgraph
scipy.io._fast_matrix_market._fmm_core scipy.spatial scipy.spatial.distance scipy.spatial.transform scipy.special scipy.stats scipy.stats.qmc scipy.constants scipy.differentiate
"""


def rehearse():
    import numpy
    from scipy import integrate, interpolate, optimize, sparse, stats

    stats.linregress([1, 2, 3], [1, 2, 4]), stats.ttest_ind([1, 2, 3], [2, 3, 4]), stats.norm.cdf(1.0)
    optimize.minimize(lambda x: (x ** 2).sum(), [1.0, 2.0]), optimize.curve_fit(lambda x, a: a * x, [1, 2], [2, 4])
    optimize.linprog([1, 1], A_ub=[[-1, 0]], b_ub=[-1])
    integrate.quad(numpy.sin, 0, 1), integrate.solve_ivp(lambda t, y: -y, [0, 1], [1.0])
    interpolate.CubicSpline([0, 1, 2], [0, 1, 4]), sparse.csr_matrix(numpy.eye(2)) @ numpy.ones(2)


def install():
    from lockhouse_path_arguments import read, write
    from scipy import io
    from scipy.io import wavfile

    read(io, "mmread mminfo", 0, "source")
    write(io, "mmwrite", 0, "target")
    open_netcdf, read_sound = io.netcdf_file.__init__, wavfile.read

    # Files in memory cannot be mapped. Whoever only reads them notices no difference.
    def __init__(self, filename, mode="r", mmap=None, *args, **named):
        open_netcdf(self, filename, mode, False, *args, **named)

    io.netcdf_file.__init__ = __init__
    wavfile.read = lambda filename, mmap=False: read_sound(filename)


def first_use():
    from scipy import stats

    stats.linregress([1, 2, 3], [1, 2, 4]), stats.ttest_ind([1, 2, 3], [2, 3, 4])
