# task: Sales by month and product as a pivot table with totals
# value: [{"month":"2024-01","apples":3,"pears":5,"All":8},{"month":"2024-02","apples":4,"pears":0,"All":4},{"month":"All","apples":7,"pears":5,"All":12}]
import pandas as pd
sales = pd.DataFrame({"date": pd.to_datetime(["2024-01-03", "2024-01-20", "2024-02-01", "2024-01-31"]), "product": ["apples", "pears", "apples", "apples"], "n": [1, 5, 4, 2]})
sales["month"] = sales["date"].dt.strftime("%Y-%m")
pivot = sales.pivot_table(index="month", columns="product", values="n", aggfunc="sum", fill_value=0, margins=True)
pivot.reset_index().to_dict(orient="records")
