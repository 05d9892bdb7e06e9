const names = ["report1.txt", "report2.txt"];
const parts = [];
for (const name of names) parts.push((await files.cat({ file_name: name })).file_content);
await files.touch({ file_name: "combined.txt" });
await files.echo({ content: parts.join("\n"), file_name: "combined.txt" });
const combined = await files.cat({ file_name: "combined.txt" });
return combined.file_content;
