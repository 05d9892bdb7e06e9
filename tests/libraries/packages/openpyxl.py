# package: pandas, openpyxl
# value: [[{"a":1,"b":"x"},{"a":2,"b":"y"}],["one","two"],true,2]
import io
import pandas as pd
import openpyxl
frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
buffer = io.BytesIO()
with pd.ExcelWriter(buffer, engine="openpyxl") as writer:
    frame.to_excel(writer, sheet_name="one", index=False)
    frame.to_excel(writer, sheet_name="two", index=False)
book = openpyxl.load_workbook(io.BytesIO(buffer.getvalue()))
book["one"]["A2"].font = openpyxl.styles.Font(bold=True)
book["one"].add_chart(openpyxl.chart.BarChart(), "D1")
out = io.BytesIO()
book.save(out)
frame.to_excel("/out/a.xlsx")
[pd.read_excel(io.BytesIO(out.getvalue()), sheet_name="one"), book.sheetnames, out.getvalue()[:2] == b"PK", len(pd.read_excel("/out/a.xlsx"))]
