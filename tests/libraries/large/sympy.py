# package: sympy
# value: 2600000.0
import numpy as np
import sympy
x = sympy.symbols("x")
float(sympy.lambdify(x, sympy.sin(x) ** 2 + sympy.cos(x) ** 2, "numpy")(np.arange(2_600_000, dtype="f8")).sum().round(3))
