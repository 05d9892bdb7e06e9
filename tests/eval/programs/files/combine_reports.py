from mcp_tools.files import cat, echo, touch

parts = [cat(file_name=name)["file_content"] for name in ("report1.txt", "report2.txt")]
touch(file_name="combined.txt")
echo(content="\n".join(parts), file_name="combined.txt")
cat(file_name="combined.txt")["file_content"]
