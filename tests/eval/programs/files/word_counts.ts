const listing = await files.ls();
const counts: Record<string, number> = {};
for (const name of listing.current_directory_content) {
  if (!name.endsWith(".txt")) continue;
  const result = await files.wc({ file_name: name, mode: "w" });
  counts[name] = result.count;
}
const total = Object.values(counts).reduce((a, b) => a + b, 0);
return { counts, total };
