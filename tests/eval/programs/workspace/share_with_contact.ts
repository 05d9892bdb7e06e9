const contacts = await workspace.search_contacts_by_name({ query: "Katie" });
const reports = await workspace.search_files_by_filename({ filename: "sales-report" });
const shared = await workspace.share_file({
  file_id: reports[0].id_,
  email: contacts[0].email,
  permission: "r",
});
return shared.shared_with;
