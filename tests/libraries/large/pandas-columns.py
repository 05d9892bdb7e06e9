# package: pandas, pyarrow
# value: [true, [1400000, 3], [10, 3], [466667, 3], [1400000, 3], [1400000, 3], [1400000, 3]]
import os
import numpy as np
import pandas as pd
rows = 1_400_000
frame = pd.DataFrame({"number": np.arange(rows), "part": np.arange(rows) / 3, "group": np.arange(rows) % 3})
frame.to_parquet("large.parquet", compression=None)
frame.to_parquet("folder", partition_cols=["group"])
frame.to_feather("large.feather", compression="uncompressed")
frame.to_csv("large.csv", index=False)
frame.to_orc("large.orc")
[
    os.path.getsize("large.parquet") > 20_000_000,
    list(pd.read_parquet("large.parquet").shape),
    list(pd.read_parquet("large.parquet", filters=[("number", "<", 10)]).shape),
    list(pd.read_parquet("folder", filters=[("group", "==", 1)]).shape),
    list(pd.read_feather("large.feather").shape),
    list(pd.read_csv("large.csv", engine="pyarrow").shape),
    list(pd.read_orc("large.orc").shape),
]
