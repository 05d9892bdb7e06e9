# package: scikit-learn
# value: [1.0, true, [3.0, 1.0], 2]
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
x, y = make_blobs(60, centers=[[0, 0], [9, 9]], random_state=1)
forest = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5, random_state=1))
score = cross_val_score(forest, x, y, cv=3).mean()
line = LinearRegression().fit([[0], [1], [2]], [1, 4, 7])
labels = KMeans(2, n_init=2, random_state=1).fit_predict(x)
[float(score), bool((forest.fit(x, y).predict(x) == y).all()), [round(float(line.coef_[0]), 6), round(float(line.intercept_), 6)], len(set(labels.tolist()))]
