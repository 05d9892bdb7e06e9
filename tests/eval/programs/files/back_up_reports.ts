const listing = await files.ls();
const reports = listing.current_directory_content.filter((n) => n.startsWith("report"));
for (const report of reports) await files.cp({ source: report, destination: "Backup" });
await files.cd({ folder: "Backup" });
return (await files.ls()).current_directory_content;
