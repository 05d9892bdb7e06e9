const found = await workspace.searchFiles({ query: "budget" });
return found.map((f) => f.filename).sort();
