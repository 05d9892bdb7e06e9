# package: scikit-learn
# value: [1.0, 10, true, [1500, 1500], 3379998700000.0, 2, [[150, 4], [1797, 64], [569, 30], [178, 13], [442, 10]]]
import joblib
import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import pairwise_distances
numbers = np.arange(2_600_000, dtype="f8")
table = numbers.reshape(-1, 10)
joblib.dump(numbers, "large.joblib")
small = (datasets.load_iris, datasets.load_digits, datasets.load_breast_cancer, datasets.load_wine, datasets.load_diabetes)
[
    round(LinearRegression(n_jobs=4).fit(table, table[:, 0]).score(table, table[:, 0]), 6),
    RandomForestRegressor(n_estimators=2, max_depth=3, n_jobs=4).fit(table, table[:, 0]).n_features_in_,
    HistGradientBoostingRegressor(max_iter=3).fit(table, table[:, 0]).n_iter_ == 3,
    list(pairwise_distances(table[:1_500], n_jobs=2).shape),
    float(joblib.load("large.joblib").sum()),
    sum(joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(len)(part) for part in ("a", "b"))),
    [list(load().data.shape) for load in small],
]
