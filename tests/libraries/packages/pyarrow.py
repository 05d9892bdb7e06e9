# package: pyarrow
# value: [3,[{"b":"x","a_sum":1},{"b":"y","a_sum":2}],[1,2]]
import io
import pyarrow as pa
from pyarrow import compute, csv, parquet
table = pa.table({"a": [1, 2], "b": ["x", "y"]})
buffer = io.BytesIO()
parquet.write_table(table, buffer)
back = parquet.read_table(io.BytesIO(buffer.getvalue()))
groups = back.group_by("b").aggregate([("a", "sum")]).sort_by("b").select(["b", "a_sum"])
[compute.sum(table["a"]).as_py(), groups.to_pylist(), csv.read_csv(io.BytesIO(b"q\n1\n2"))["q"].to_pylist()]
