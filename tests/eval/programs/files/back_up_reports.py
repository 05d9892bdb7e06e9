from mcp_tools.files import cd, cp, ls

reports = [n for n in ls()["current_directory_content"] if n.startswith("report")]
for report in reports:
    cp(source=report, destination="Backup")
cd(folder="Backup")
ls()["current_directory_content"]
