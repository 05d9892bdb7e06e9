# package: pyarrow
# value: [true, 1400000, 1400000, 10, 1400000, 1400000, 1400000, 1400000, 1400000, 1400000, 3]
import os
import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, ipc, parquet
rows = 1_400_000
table = pa.table({"number": np.arange(rows), "part": np.arange(rows) / 3, "group": np.arange(rows) % 3})
parquet.write_table(table, "large.parquet", compression="none")
csv.write_csv(table, "large.csv")
feather.write_feather(table, "large.feather", compression="uncompressed")
[
    os.path.getsize("large.parquet") > 20_000_000,
    parquet.read_table("large.parquet", use_threads=True).num_rows,
    parquet.read_table("large.parquet", memory_map=True).num_rows,
    parquet.read_table("large.parquet", filters=[("number", "<", 10)]).num_rows,
    sum(batch.num_rows for batch in parquet.ParquetFile("large.parquet").iter_batches()),
    csv.read_csv("large.csv", read_options=csv.ReadOptions(use_threads=True, block_size=1 << 20)).num_rows,
    sum(batch.num_rows for batch in csv.open_csv("large.csv")),
    feather.read_table("large.feather", memory_map=True).num_rows,
    ipc.open_file(pa.memory_map("large.feather")).read_all().num_rows,
    table.sort_by("part").num_rows,
    table.group_by("group").aggregate([("number", "sum")]).num_rows,
]
