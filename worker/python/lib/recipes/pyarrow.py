"""pyarrow: starts its threads at first use, so that is never in the zygote."""

MODULES = """
pyarrow.compute pyarrow.csv pyarrow.json pyarrow.feather pyarrow.parquet pyarrow.ipc pyarrow.dataset pyarrow.pandas_compat pyarrow.acero
"""


def rehearse():
    import io

    import pyarrow
    from pyarrow import compute, csv, parquet

    table = pyarrow.table({"a": [1, 2], "b": ["x", "y"]})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    parquet.read_table(io.BytesIO(buffer.getvalue()))
    csv.read_csv(io.BytesIO(b"a,b\n1,2")), compute.sum(table["a"]), table.group_by("b").aggregate([("a", "sum")])
    table.to_pylist()
