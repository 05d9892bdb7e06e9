async function main() {
  const files = await workspace.listFiles();
  const names = files.map((f) => f.filename).sort();
  const created = await workspace.createFile({ filename: "index.txt", content: names.join("\n") });
  return { id: created.id_, lines: names.length };
}

return await main();
