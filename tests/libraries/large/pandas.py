# package: pandas
# value: [true, [900000, 3], [900000, 3], 900000, [900000, 3], [900000, 3], 900000, [900000, 3], [900000, 3], [900000, 3], 900000]
# CSV files above 5 MB are read by several threads from a memory map in pandas 3.1, unless Lockhouse prevents it.
import os, sqlite3
import numpy as np
import pandas as pd
rows = 900_000
frame = pd.DataFrame({"number": np.arange(rows), "part": np.arange(rows) / 3, "text": [f"row {i % 1000:08d}" for i in range(rows)]})
frame.to_csv("large.csv", index=False)
frame.to_json("large.jsonl", orient="records", lines=True)
frame.to_pickle("large.pkl")
frame.to_sql("rows", sqlite3.connect("large.db"), index=False)
frame.to_csv("large.csv.gz", index=False)
frame.to_stata("large.dta", write_index=False)
pd.set_option("mode.max_threads", 4) if "mode.max_threads" in pd.describe_option(_print_desc=False) else None
[
    os.path.getsize("large.csv") > 20_000_000,
    list(pd.read_csv("large.csv").shape),
    list(pd.read_csv("large.csv", memory_map=True).shape),
    sum(len(piece) for piece in pd.read_csv("large.csv", chunksize=100_000)),
    list(pd.read_table("large.csv", sep=",").shape),
    list(pd.read_csv("large.csv.gz").shape),
    sum(len(piece) for piece in pd.read_json("large.jsonl", lines=True, chunksize=100_000)),
    list(pd.read_json("large.jsonl", lines=True).shape),
    list(pd.read_pickle("large.pkl").shape),
    list(pd.read_stata("large.dta").shape),
    int(pd.read_sql("select count(*) as count from rows", sqlite3.connect("large.db"))["count"][0]),
]
