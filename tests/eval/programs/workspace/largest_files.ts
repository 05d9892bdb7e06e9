const files = await workspace.list_files();
files.sort((a, b) => b.size - a.size);
return files.slice(0, 3).map((f) => [f.filename, f.size]);
