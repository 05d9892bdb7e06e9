# package: polars
# value: [[{"b":"x","a":3},{"b":"y","a":3}], 2, [2, 3], [3, 3, 3]]
import io
import polars as pl
frame = pl.read_csv(io.BytesIO(b"a,b\n1,x\n3,y\n2,x"))
groups = frame.lazy().group_by("b").agg(pl.col("a").sum()).sort("b").collect()
buffer = io.BytesIO()
frame.write_parquet(buffer)
back = pl.read_parquet(io.BytesIO(buffer.getvalue()))
frame.write_csv("a.csv")
frame.write_parquet("a.parquet")
by_path = [pl.read_csv("a.csv").height, pl.scan_csv("a.csv").collect().height, pl.scan_parquet("a.parquet").collect().height]
[groups.to_dicts(), back.filter(pl.col("a") > 1).height, list(back.sort("a")["a"].to_list()[1:]), by_path]
