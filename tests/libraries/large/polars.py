# package: polars
# value: [true, [1400000, 3], [10, 3], [3, 2], [1400000, 3], [1, 1], [1400000, 3], [1400000, 3], [2800000, 3], [2800000, 3], [1400000, 3], [1400000, 3]]
import os
import numpy as np
import polars as pl
rows = 1_400_000
frame = pl.DataFrame({"number": np.arange(rows), "part": np.arange(rows) / 3, "group": np.arange(rows) % 3})
frame.write_csv("large.csv")
os.mkdir("folder")
for name in ("large.parquet", "folder/a.parquet", "folder/b.parquet"):
    frame.write_parquet(name, compression="uncompressed")
frame.write_ipc("large.ipc")
frame.lazy().sink_csv("sunk.csv")
frame.lazy().sink_parquet("sunk.parquet")
shape = lambda frame: list(frame.shape)
[
    os.path.getsize("large.csv") > 20_000_000,
    shape(pl.read_csv("large.csv")),
    shape(pl.scan_csv("large.csv").filter(pl.col("number") < 10).collect()),
    shape(pl.scan_csv("large.csv").group_by("group").agg(pl.col("part").sum()).collect(engine="streaming")),
    shape(pl.read_parquet("large.parquet")),
    shape(pl.scan_parquet("large.parquet").select(pl.col("part").sum()).collect(engine="streaming")),
    shape(pl.read_ipc("large.ipc")),
    shape(pl.scan_ipc("large.ipc").collect()),
    shape(pl.read_parquet("folder/*.parquet")),
    shape(pl.scan_parquet("folder").collect()),
    shape(pl.read_csv("sunk.csv")),
    shape(pl.read_parquet("sunk.parquet")),
]
