const { current_directory_content } = await files.ls();
return current_directory_content.filter((name) => name.endsWith(".txt"));
