// The seed's error: what is missing, and what has the wrong type.
const errors = [];
for (const parameters of [{}, { file_path: '/path/to/file.txt', offset: '2' }]) {
  try { await callMCPTool('mcp__filesystem__read_file', parameters); } catch (error) { errors.push([error.code, error.message]); }
}
return errors;
