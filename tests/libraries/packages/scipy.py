# package: scipy
# value: [2.0, 0.0455, 1.0, [2.0, 2.0], 0.3679]
import numpy as np
from scipy import integrate, interpolate, optimize, stats
slope = stats.linregress([0, 1, 2], [1, 3, 5]).slope
tail = 2 * (1 - stats.norm.cdf(2))
area = integrate.quad(lambda x: 2 * x, 0, 1)[0]
least = optimize.minimize(lambda x: ((x - 2) ** 2).sum(), [0.0, 0.0]).x
decay = integrate.solve_ivp(lambda t, y: -y, [0, 1], [1.0], rtol=1e-8).y[0, -1]
[round(float(slope), 6), round(float(tail), 4), round(area, 6), [round(float(v), 3) for v in least], round(float(decay), 4)]
