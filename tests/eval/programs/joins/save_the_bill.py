from mcp_tools.banking import read_file
from mcp_tools.workspace import create_file, list_files

bill = read_file(file_path="bill-december-2023.txt")
create_file(filename="bill-december-2023.txt", content=bill)
print([f["filename"] for f in list_files()][-1], len(bill.splitlines()))
