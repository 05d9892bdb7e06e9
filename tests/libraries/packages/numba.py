# package: numba
# error: no memory can become executable
import numba
@numba.njit
def f(x):
    return x + 1
f(1)
