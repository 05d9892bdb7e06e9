import json
from mcp_tools.files import ls, wc

names = json.loads(ls())["current_directory_content"]
sizes = {n: json.loads(wc(file_name=n, mode="c"))["count"] for n in names if "." in n}
max(sizes, key=sizes.get)
