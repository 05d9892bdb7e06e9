"""pandas: readers, writers and methods import their parts at first use."""

import io

MODULES = "pandas._libs.byteswap pandas._libs.sas"
_CSV = "a,b,t\n1,x,2020-01-01\n2,y,2020-01-02"


def _frame():
    import pandas

    return pandas.read_csv(io.StringIO(_CSV), parse_dates=["t"])


def _excel(engine):
    import pandas

    buffer = io.BytesIO()
    with pandas.ExcelWriter(buffer, engine=engine) as writer:
        _frame().to_excel(writer, sheet_name="one", index=False)
    pandas.read_excel(io.BytesIO(buffer.getvalue()), engine="openpyxl")


def _parquet():
    import pandas

    buffer = io.BytesIO()
    _frame().to_parquet(buffer)
    pandas.read_parquet(io.BytesIO(buffer.getvalue()))
    feather = io.BytesIO()
    _frame().to_feather(feather)
    pandas.read_feather(io.BytesIO(feather.getvalue()))


def _text():
    import pandas

    frame = _frame()
    pandas.read_json(io.StringIO(frame.to_json(orient="records")))
    pandas.read_json(io.StringIO(frame.to_json(orient="records", lines=True)), lines=True)
    frame.to_csv(), frame.to_string(), frame.to_html()
    pandas.json_normalize([{"a": {"b": 1}}])
    pandas.read_pickle(io.BytesIO(_pickled(frame)))
    pandas.read_fwf(io.StringIO("a b\n1 2"))
    frame.to_markdown()
    frame.to_latex()


def _pickled(frame):
    buffer = io.BytesIO()
    frame.to_pickle(buffer)
    return buffer.getvalue()


def _markup():
    import pandas

    pandas.read_html(io.StringIO("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"))
    pandas.read_xml(io.StringIO("<r><row><a>1</a></row></r>"))
    _frame().to_xml()


def _sql():
    import sqlite3

    import pandas

    connection = sqlite3.connect(":memory:")
    _frame().to_sql("t", connection, index=False)
    pandas.read_sql("select * from t", connection)


def _plot():
    from matplotlib import pyplot

    frame = _frame().set_index("t")
    for kind in ("line", "bar", "hist", "box"):
        frame[["a"]].plot(kind=kind)
    frame["a"].plot(kind="pie")
    pyplot.close("all")


def _style():
    _frame().style.to_html()


def install():
    from pandas.io import common
    from pandas.io.parsers import readers

    # pandas 3.1 maps a CSV file of some megabytes into memory, and reads it with several threads.
    readers._can_parallelize_csv = lambda *args, **named: False
    map_file = getattr(common, "_maybe_memory_map", None)
    if map_file is not None:
        common._maybe_memory_map = lambda handle, memory_map: map_file(handle, False)


def rehearse():
    for part in (first_use, _text, _excel_parts, _parquet, _markup, _sql, _style, _plot):
        try:
            part()
        except Exception:
            pass  # Its library is not installed.


def _excel_parts():
    for engine in ("xlsxwriter", "openpyxl"):
        try:
            _excel(engine)
        except Exception:
            pass


def first_use():
    import pandas

    frame = _frame()
    str(frame), frame.describe(), frame.groupby("b").agg({"a": "sum"}), frame.merge(frame, on="a")
    frame.pivot_table(index="b", values="a"), frame.to_csv(), frame.to_json(), frame.to_dict(orient="records")
    frame.set_index("t").resample("D").sum(numeric_only=True), frame.rolling(2, on="t")["a"].mean()
    pandas.concat([frame, frame]).sort_values("a").drop_duplicates(), frame.melt(id_vars="t"), frame.corr(numeric_only=True)
    pandas.to_datetime(["2020-01-01"]).tz_localize("UTC").tz_convert("Europe/Berlin"), frame.info(buf=io.StringIO())
    pandas.cut(frame["a"], 2), pandas.crosstab(frame["a"], frame["b"]), frame["b"].str.upper(), frame.query("a > 1")
