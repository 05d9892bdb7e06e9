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


def _os_file(path, mode="r", memory_pool=None):
    """Takes the place of the class OSFile, which opens its file itself. pandas 3 writes Parquet with it."""
    import pyarrow

    kind = "w" if "w" in mode else "r"
    return pyarrow.PythonFile(open(path, kind + "b", buffering=0), kind)


def install():
    import pyarrow
    from lockhouse_path_arguments import read, write
    from pyarrow import csv, feather, ipc, json, parquet

    pyarrow.OSFile = _os_file
    read(parquet, "read_table")
    read(parquet, "read_metadata read_schema", 0, "where")
    read(parquet.ParquetFile, "__init__", 1)
    read(csv, "read_csv open_csv", 0, "input_file")
    read(json, "read_json", 0, "input_file")
    read(feather, "read_table read_feather")
    read(ipc, "open_file open_stream")
    write(parquet, "write_table", 1, "where")
    write(parquet.ParquetWriter, "__init__", 1, "where", closes=False)
    write(csv, "write_csv", 1, "output_file")
    write(feather, "write_feather", 1, "dest")
