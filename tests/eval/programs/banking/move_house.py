from mcp_tools.banking import read_file, update_user_info

lines = [line.strip() for line in read_file(file_path="address-change.txt").split("\n")]
start = lines.index("USA") - 2
street = lines[start]
city = lines[start + 1].split(",")[0]
info = update_user_info(street=street, city=city)
info
