const { matches } = await files.find({ path: ".", name: "History" });
for (const path of matches) {
  const name = path.split("/").pop();
  const found = await files.grep({ file_name: name, pattern: "History" });
  for (const line of found.matching_lines) console.log(`${name}: ${line}`);
}
