const names = JSON.parse(await files.ls()).current_directory_content;
let longest = { name: "", size: -1 };
for (const name of names.filter((n) => n.includes("."))) {
  const size = JSON.parse(await files.wc({ file_name: name, mode: "c" })).count;
  if (size > longest.size) longest = { name, size };
}
return longest.name;
