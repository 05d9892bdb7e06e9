"""statsmodels: its interface imports everything, and itself under a second name."""

ALL_LIBRARIES = True
MODULES = "statsmodels.__init__ statsmodels.api statsmodels.formula.api statsmodels.tsa.api"


def rehearse():
    import pandas
    from statsmodels.formula import api

    str(api.ols("y ~ x", data=pandas.DataFrame({"x": [0, 1, 2, 4], "y": [1.0, 3.0, 5.0, 8.0]})).fit().summary())
