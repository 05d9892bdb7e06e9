# task: Revenue and average order by region, the largest first
# value: [{"region":"north","revenue":350.0,"average":116.67,"orders":3},{"region":"south","revenue":200.0,"average":100.0,"orders":2}]
import pandas as pd
orders = pd.DataFrame({"region": ["north", "south", "north", "south", "north"], "amount": [100.0, 50.0, 200.0, 150.0, 50.0]})
table = orders.groupby("region")["amount"].agg(revenue="sum", average="mean", orders="count").round(2)
table.sort_values("revenue", ascending=False).reset_index()
