# package: statsmodels
# value: [3, true, 3]
import os
import numpy as np
import statsmodels.api as sm
table = np.random.default_rng(1).normal(size=(650_000, 4))
fitted = sm.OLS(table[:, 0], table[:, 1:]).fit()
fitted.save("large.pkl")
[len(fitted.params), os.path.getsize("large.pkl") > 20_000_000, len(sm.load("large.pkl").params)]
