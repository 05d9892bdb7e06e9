from mcp_tools.files import ls

names = ls()["current_directory_content"]
[name for name in names if name.endswith(".txt")]
