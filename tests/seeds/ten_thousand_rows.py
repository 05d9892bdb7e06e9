# 10,000 rows come into the program, and five of them out of it.
from mcp_tools.gdrive import get_sheet

all_rows = get_sheet(sheet_id='abc123')  # 10,000 rows
pending = [r for r in all_rows if r['status'] == 'pending']  # Filter locally
print(f"Found {len(pending)} pending orders")
print(pending[:5])  # Only 5 rows to context
