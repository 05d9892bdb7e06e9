# package: pandas, pyarrow
# value: [[{"a":1,"b":"x"},{"a":2,"b":"y"}],true,[1,2],[2,2]]
import io
import pandas as pd
frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
buffer = io.BytesIO()
frame.to_parquet(buffer)
back = pd.read_parquet(io.BytesIO(buffer.getvalue()))
feather = io.BytesIO()
frame.to_feather(feather)
frame.to_parquet("a.parquet")
frame.to_feather("a.feather")
by_path = [len(pd.read_parquet("a.parquet")), len(pd.read_feather("a.feather"))]
[back, bool(back.equals(frame)), pd.read_feather(io.BytesIO(feather.getvalue()))["a"].tolist(), by_path]
