const ids = ["2", "14", "19"];
const files = await Promise.all(ids.map((id) => workspace.getFileById({ file_id: id })));
const result = {};
for (const { filename, content } of files) {
  result[filename] = content.split(/\s+/).filter(Boolean).length;
}
return result;
