# task: Compare two groups with a t test, and a table with chi-squared
# value: {"different":true,"p_below":0.001,"chi2_p":1.0}
import numpy as np
from scipy import stats
rng = np.random.default_rng(1)
first, second = rng.normal(10, 1, 50), rng.normal(12, 1, 50)
test = stats.ttest_ind(first, second)
chi = stats.chi2_contingency([[10, 10], [20, 20]])
{"different": bool(test.pvalue < 0.05), "p_below": 0.001 if test.pvalue < 0.001 else 1, "chi2_p": round(float(chi.pvalue), 4)}
