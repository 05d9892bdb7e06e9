# task: Query a Parquet file with SQL and with polars
# value: {"sql":[["b",5]],"polars":[{"k":"a","n":3},{"k":"b","n":5}]}
import io
import duckdb
import pandas as pd
import polars as pl
frame = pd.DataFrame({"k": ["a", "b", "a"], "n": [1, 5, 2]})
buffer = io.BytesIO()
frame.to_parquet(buffer)
back = pd.read_parquet(io.BytesIO(buffer.getvalue()))
rows = duckdb.sql("select k, n::int from back where n > 4").fetchall()
groups = pl.read_parquet(io.BytesIO(buffer.getvalue())).group_by("k").agg(pl.col("n").sum()).sort("k")
{"sql": rows, "polars": groups.to_dicts()}
