from mcp_tools.workspace import search_files

sorted(f["filename"] for f in search_files(query="budget"))
