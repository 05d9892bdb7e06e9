# task: Join customers with orders, drop duplicates and fill missing values
# value: [{"name":"Ada","total":30.0},{"name":"Bob","total":0.0}]
import io
import pandas as pd
customers = pd.read_csv(io.StringIO("id,name\n1,ada\n2,bob\n2,bob\n"))
orders = pd.read_csv(io.StringIO("customer,amount\n1,10\n1,20\n9,5\n"))
merged = customers.drop_duplicates().merge(orders, left_on="id", right_on="customer", how="left")
merged["amount"] = merged["amount"].fillna(0)
merged["name"] = merged["name"].str.title()
merged.groupby("name", as_index=False).agg(total=("amount", "sum"))
