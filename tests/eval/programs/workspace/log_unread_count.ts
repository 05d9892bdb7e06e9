const unread = await workspace.get_unread_emails();
const [journal] = await workspace.search_files_by_filename({ filename: "personal-journal" });
const updated = await workspace.append_to_file({ file_id: journal.id_, content: `\nUnread emails: ${unread.length}` });
return updated.content.split("\n").pop();
