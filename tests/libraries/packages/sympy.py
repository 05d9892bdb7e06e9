# package: sympy
# value: ["x**3/3", [-2, 2], "2*x", "[[1, 0], [0, 1]]"]
import sympy
x = sympy.symbols("x")
[str(sympy.integrate(x ** 2, x)), sorted(int(root) for root in sympy.solve(x ** 2 - 4, x)), str(sympy.diff(x ** 2, x)), str(sympy.eye(2).tolist())]
