# package: pyarrow
# value: [3,[{"b":"x","a_sum":1},{"b":"y","a_sum":2}],[1,2],[2,2,2,2,["a","b"]]]
import io
import pyarrow as pa
from pyarrow import compute, csv, parquet
table = pa.table({"a": [1, 2], "b": ["x", "y"]})
buffer = io.BytesIO()
parquet.write_table(table, buffer)
back = parquet.read_table(io.BytesIO(buffer.getvalue()))
groups = back.group_by("b").aggregate([("a", "sum")]).sort_by("b").select(["b", "a_sum"])
parquet.write_table(table, "a.parquet")
csv.write_csv(table, "a.csv")
with parquet.ParquetWriter("b.parquet", table.schema) as writer:
    writer.write_table(table)
by_path = [parquet.read_table("a.parquet").num_rows, csv.read_csv("a.csv").num_rows, parquet.ParquetFile("b.parquet").metadata.num_rows, parquet.read_metadata("a.parquet").num_rows, parquet.read_schema("a.parquet").names]
[compute.sum(table["a"]).as_py(), groups.to_pylist(), csv.read_csv(io.BytesIO(b"q\n1\n2"))["q"].to_pylist(), by_path]
