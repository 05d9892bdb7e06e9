# package: statsmodels
# value: [1.0, 2.0, true]
import pandas as pd
import statsmodels.api as sm
import statsmodels.formula.api as smf
frame = pd.DataFrame({"x": [0, 1, 2, 3], "y": [1.0, 3.0, 5.0, 7.0]})
fit = smf.ols("y ~ x", data=frame).fit()
other = sm.OLS(frame["y"], sm.add_constant(frame["x"])).fit()
[round(float(fit.params["Intercept"]), 6), round(float(other.params["x"]), 6), "OLS Regression" in str(fit.summary())]
