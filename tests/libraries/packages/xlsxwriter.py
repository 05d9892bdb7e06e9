# package: pandas, xlsxwriter, openpyxl
# value: [{"a":1},{"a":2}]
import io
import pandas as pd
buffer = io.BytesIO()
with pd.ExcelWriter(buffer, engine="xlsxwriter") as writer:
    pd.DataFrame({"a": [1, 2]}).to_excel(writer, index=False, sheet_name="s")
    chart = writer.book.add_chart({"type": "line"})
    chart.add_series({"values": "=s!$A$2:$A$3"})
    writer.sheets["s"].insert_chart("C1", chart)
pd.read_excel(io.BytesIO(buffer.getvalue()))
