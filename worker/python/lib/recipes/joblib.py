"""joblib: counts the processors with files of the host, and with a program. A worker uses one processor."""


def install():
    from joblib import parallel
    from joblib._parallel_backends import SequentialBackend
    from joblib.externals.loky.backend import context

    context._cpu_count_cgroup = lambda processors: 1
    context._count_physical_cores = lambda: (1, None)
    parallel.BACKENDS.update(dict.fromkeys(parallel.BACKENDS, SequentialBackend))  # Also for threads: their pool needs semaphores.
    context.cpu_count = parallel.cpu_count = lambda *args, **kwargs: 1
