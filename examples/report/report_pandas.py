"""The same report as report.py, with pandas and matplotlib."""

import matplotlib.pyplot as plt
import pandas as pd
from gdrive import get_sheet
from postgres import query

revenue = pd.DataFrame(query("SELECT id, country, revenue FROM orders")).groupby("country")["revenue"].sum()
orders = len(get_sheet("orders"))
report = pd.read_csv("targets.csv").set_index("country").join(revenue).sort_index()
report["reached"] = (report["revenue"] / report["target"]).round(3)

report.to_excel("/out/report.xlsx")
report[["revenue", "target"]].plot.bar()
plt.savefig("/out/report.png")

{"countries": len(report), "reached": list(report.index[report["reached"] >= 1]), "orders": orders}
