"""threadpoolctl: looks for libraries with threads in /proc. Their pools have one thread in a worker, so there is nothing to limit."""


def install():
    import threadpoolctl

    threadpoolctl.ThreadpoolController._load_libraries = lambda self: None
