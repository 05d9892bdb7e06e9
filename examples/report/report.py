"""Joins two servers and a local file, and returns a plot and a spreadsheet."""

import csv
from collections import Counter

from gdrive import get_sheet
from postgres import query

revenue = Counter()
for row in query("SELECT id, country, revenue FROM orders"):
    revenue[row["country"]] += row["revenue"]
states = Counter(row["status"] for row in get_sheet("orders"))

with open("targets.csv", newline="") as file:
    targets = {row["country"]: int(row["target"]) for row in csv.DictReader(file)}
report = [
    {"country": country, "revenue": revenue[country], "target": target, "reached": round(revenue[country] / target, 3)}
    for country, target in sorted(targets.items())
]

with open("/out/report.csv", "w", newline="") as file:
    table = csv.DictWriter(file, report[0])
    table.writeheader()
    table.writerows(report)

scale = 200 / max(max(row["revenue"], row["target"]) for row in report)
bars = []
for number, row in enumerate(report):
    left = 20 + number * 90
    for offset, name, colour in ((0, "revenue", "#356"), (35, "target", "#bbb")):
        height = row[name] * scale
        bars.append(f'<rect x="{left + offset}" y="{220 - height:.1f}" width="30" height="{height:.1f}" fill="{colour}"/>')
    bars.append(f'<text x="{left + 20}" y="240">{row["country"]}</text>')
with open("/out/report.svg", "w") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{30 + 90 * len(report)}" height="250">{"".join(bars)}</svg>')

{"countries": len(report), "reached": [row["country"] for row in report if row["reached"] >= 1], "orders": sum(states.values())}
