# package: pyarrow
# value: [["part-0.parquet", "part-1.parquet", "part-2.parquet"], 1400000, 10, 1000000, 1400000, 1400000, 466667, 1400000, "FileNotFoundError"]
import os
import numpy as np
import pyarrow as pa
from pyarrow import csv, dataset, parquet
rows = 1_400_000
table = pa.table({"number": np.arange(rows), "part": np.arange(rows) / 3, "group": np.arange(rows) % 3})
dataset.write_dataset(table, "folder", format="parquet", max_rows_per_file=500_000, max_rows_per_group=100_000)
parquet.write_to_dataset(table, "groups", partition_cols=["group"])
csv.write_csv(table, "large.csv")
try:
    dataset.dataset("none")
except Exception as error:
    missing = type(error).__name__
files = dataset.dataset("folder")
[
    sorted(os.listdir("folder")),
    files.count_rows(),
    files.to_table(filter=dataset.field("number") < 10).num_rows,
    dataset.dataset(["folder/part-0.parquet", "folder/part-1.parquet"]).count_rows(),
    sum(batch.num_rows for batch in files.to_batches()),
    parquet.read_table("folder").num_rows,
    dataset.dataset("groups", partitioning="hive").to_table(filter=dataset.field("group") == 1).num_rows,
    dataset.dataset("large.csv", format="csv").count_rows(),
    missing,
]
