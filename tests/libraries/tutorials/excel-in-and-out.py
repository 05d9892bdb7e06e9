# task: Read an Excel workbook, add a sheet with sums, and write it
# value: {"sheets":["data","sums"],"sums":[{"team":"a","hours":5},{"team":"b","hours":4}],"formula":"=SUM(B2:B3)"}
import io
import openpyxl
import pandas as pd
received = io.BytesIO()
pd.DataFrame({"team": ["a", "b", "a"], "hours": [2, 4, 3]}).to_excel(received, sheet_name="data", index=False)
data = pd.read_excel(io.BytesIO(received.getvalue()), sheet_name="data")
result = io.BytesIO()
with pd.ExcelWriter(result, engine="openpyxl") as writer:
    data.to_excel(writer, sheet_name="data", index=False)
    data.groupby("team", as_index=False)["hours"].sum().to_excel(writer, sheet_name="sums", index=False)
    writer.sheets["sums"]["B4"] = "=SUM(B2:B3)"
book = openpyxl.load_workbook(io.BytesIO(result.getvalue()))
sums = pd.read_excel(io.BytesIO(result.getvalue()), sheet_name="sums", nrows=2)
{"sheets": book.sheetnames, "sums": sums, "formula": book["sums"]["B4"].value}
