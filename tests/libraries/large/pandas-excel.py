# package: pandas, openpyxl, xlsxwriter
# value: [[18000, 3], [18000, 3], ["Sheet1", "more"]]
import pandas as pd
frame = pd.DataFrame({"number": range(18_000), "text": [f"{i:08d}" * 140 for i in range(18_000)], "part": [i / 3 for i in range(18_000)]})
frame.to_excel("one.xlsx", index=False, engine="openpyxl")
frame.to_excel("two.xlsx", index=False, engine="xlsxwriter")
with pd.ExcelWriter("one.xlsx", mode="a", engine="openpyxl") as writer:
    frame.head(10).to_excel(writer, sheet_name="more")
[
    list(pd.read_excel("one.xlsx", sheet_name="Sheet1").shape),
    list(pd.read_excel("two.xlsx").shape),
    pd.ExcelFile("one.xlsx").sheet_names,
]
