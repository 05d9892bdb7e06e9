# Rows into a data frame, and a table out of it. The seed leaves out the imports.
import pandas
from mcp_tools import postgres, sheets

# Process large datasets locally
data = postgres.query("SELECT * FROM users WHERE created_at > NOW() - INTERVAL '7 days'")
analysis = pandas.DataFrame(data).groupby('country').agg({'revenue': 'sum'})
sheets.update(spreadsheet_id='abc', data=analysis.to_dict())
