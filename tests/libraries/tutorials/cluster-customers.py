# task: Cluster customers after scaling, and describe the clusters
# value: [{"cluster":"A","age":25.0,"spent":100.0,"size":3},{"cluster":"B","age":60.0,"spent":900.0,"size":3}]
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
people = pd.DataFrame({"age": [24, 25, 26, 59, 60, 61], "spent": [90, 100, 110, 880, 900, 920]})
people["label"] = make_pipeline(StandardScaler(), KMeans(2, n_init=3, random_state=0)).fit_predict(people)
table = people.groupby("label").agg(age=("age", "mean"), spent=("spent", "mean"), size=("age", "size")).sort_values("age")
table.insert(0, "cluster", ["A", "B"])
table.reset_index(drop=True)
