from mcp_tools.files import find, grep

hits = []
for path in find(path=".", name="History")["matches"]:
    name = path.split("/")[-1]
    for line in grep(file_name=name, pattern="History")["matching_lines"]:
        hits.append(f"{name}: {line}")
print("\n".join(hits))
