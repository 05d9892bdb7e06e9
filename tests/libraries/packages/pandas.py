# package: pandas
# value: [{"city":"Bonn","n":3},{"city":"Ulm","n":3}]
import io
import pandas as pd
frame = pd.read_csv(io.StringIO("city,n\nBonn,1\nUlm,3\nBonn,2\n"))
again = pd.read_json(io.StringIO(frame.to_json(orient="records")))
again.groupby("city", as_index=False)["n"].sum()
