from mcp_tools import workspace


def main():
    names = sorted(f["filename"] for f in workspace.list_files())
    created = workspace.create_file(filename="index.txt", content="\n".join(names))
    return {"id": created["id_"], "lines": len(names)}


main()
