from collections import defaultdict

import mcp_tools.workspace as workspace

by_owner = defaultdict(list)
for f in workspace.list_files():
    by_owner[f["owner"]].append(f["filename"])

{owner: len(names) for owner, names in by_owner.items() if len(names) > 1}
