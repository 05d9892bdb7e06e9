const david = "david.lee@bluesparrowtech.com";
const all = await workspace.listFiles();
return all.filter((f) => f.shared_with[david] === "rw").map((f) => f.filename);
