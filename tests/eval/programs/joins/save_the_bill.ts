const bill = await banking.readFile({ file_path: "bill-december-2023.txt" });
await workspace.createFile({ filename: "bill-december-2023.txt", content: bill });
const all = await workspace.listFiles();
console.log(all[all.length - 1].filename, bill.trimEnd().split("\n").length);
