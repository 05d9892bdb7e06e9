# package: duckdb
# value: [[3379998700000.0, 2600000], [0, 1126666233333.0], [200000, 20000000], "IOException"]
import duckdb
import numpy as np
import pandas as pd
frame = pd.DataFrame({"number": np.arange(2_600_000, dtype="f8"), "group": np.arange(2_600_000) % 3})
total = duckdb.sql("select sum(number), count(*) from frame").fetchall()[0]
duckdb.sql("set threads = 4")
group = duckdb.sql("select \"group\", sum(number) from frame group by \"group\" order by \"group\"").fetchall()[0]
duckdb.sql("create table large as select range as number, repeat('x', 100) as text from range(200000)")
stored = duckdb.sql("select count(*), sum(length(text)) from large").fetchall()[0]
try:
    duckdb.read_csv("large.csv").fetchall()
except Exception as error:
    refused = type(error).__name__
[list(total), list(group), [int(number) for number in stored], refused]
