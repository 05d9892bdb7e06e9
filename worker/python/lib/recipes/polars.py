"""polars: starts a thread when it is imported, and more at first use. So its last step of the import follows after the seal."""

import importlib
import os

MODULES = "polars.selectors"
_RUNTIMES = ("compat", "64", "32")
_STEP = "__register_startup_deps"
_deferred = []


def before(name):
    """Called before a module of polars is imported for the first time."""
    if name != "polars":
        return
    # Its allocator would start threads too. Polars asks for this variable only while it is imported.
    os.environ["_RJEM_MALLOC_CONF"] = "background_thread:false"
    os.environ["POLARS_ASYNC_THREAD_COUNT"] = "1"
    for runtime in _RUNTIMES:
        try:
            module = importlib.import_module(f"_polars_runtime_{runtime}._polars_runtime")
        except ImportError:
            continue
        step = vars(module).get(_STEP)
        if step is not None:
            setattr(module, _STEP, lambda *args, step=step: _deferred.append((step, args)))


def after_seal():
    """Called when a worker imports polars."""
    while _deferred:
        step, args = _deferred.pop()
        step(*args)


def rehearse():
    import io

    import polars

    after_seal()
    frame = polars.read_csv(io.BytesIO(b"a,b\n1,x\n2,y"))
    frame.group_by("b").agg(polars.col("a").sum()).sort("b"), str(frame), frame.describe()
    frame.lazy().filter(polars.col("a") > 1).collect(), frame.to_dicts(), frame.write_csv(), frame.write_json()
    frame.pivot(on="b", values="a"), polars.read_json(io.BytesIO(frame.write_json().encode()))
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    polars.read_parquet(io.BytesIO(buffer.getvalue()))
    for convert in (frame.to_pandas, frame.to_numpy, frame.to_arrow):
        try:
            convert()
        except ImportError:
            pass


def install():
    import polars
    from lockhouse_path_arguments import read, write

    read(polars, "read_csv read_parquet read_ndjson read_ipc scan_csv scan_parquet scan_ndjson scan_ipc", several=True)
    read(polars, "read_json read_avro read_ipc_stream read_parquet_schema read_parquet_metadata read_ipc_schema")
    write(polars.DataFrame, "write_csv write_parquet write_json write_ndjson write_ipc write_ipc_stream write_avro", 1, "file")
    write(polars.LazyFrame, "sink_csv sink_parquet sink_ndjson sink_ipc", 1, "path")
