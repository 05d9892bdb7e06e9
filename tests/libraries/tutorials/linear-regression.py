# task: Linear regression with train and test data, and its score
# value: {"slope":3.0,"intercept":2.0,"r2":1.0,"prediction":32.0}
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
x = np.arange(40, dtype=float).reshape(-1, 1)
y = 3 * x.ravel() + 2
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=0)
model = LinearRegression().fit(x_train, y_train)
{"slope": round(float(model.coef_[0]), 6), "intercept": round(float(model.intercept_), 6), "r2": round(float(r2_score(y_test, model.predict(x_test))), 6), "prediction": round(float(model.predict([[10.0]])[0]), 6)}
