from mcp_tools.workspace import list_files

files = sorted(list_files(), key=lambda f: f["size"], reverse=True)
[(f["filename"], f["size"]) for f in files[:3]]
