from mcp_tools.workspace import search_contacts_by_name, search_files_by_filename, share_file

contact = search_contacts_by_name(query="Katie")[0]
report = search_files_by_filename(filename="sales-report")[0]
shared = share_file(file_id=report["id_"], email=contact["email"], permission="r")
shared["shared_with"]
