from mcp_tools.files import ls, wc

counts = {}
for name in ls()["current_directory_content"]:
    if name.endswith(".txt"):
        counts[name] = wc(file_name=name, mode="w")["count"]
{"counts": counts, "total": sum(counts.values())}
