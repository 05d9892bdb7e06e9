from mcp_tools.workspace import append_to_file, get_unread_emails, search_files_by_filename

count = len(get_unread_emails())
journal = search_files_by_filename("personal-journal")[0]
updated = append_to_file(file_id=journal["id_"], content=f"\nUnread emails: {count}")
updated["content"].splitlines()[-1]
