"""joblib: counts the processors with files of the host, and with a program. A worker uses one processor."""


def install():
    from joblib import parallel
    from joblib.externals.loky.backend import context

    context._cpu_count_cgroup = lambda processors: 1
    context._count_physical_cores = lambda: (1, None)
    context.cpu_count = parallel.cpu_count = lambda *args, **kwargs: 1
