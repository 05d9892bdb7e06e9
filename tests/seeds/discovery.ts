// Find, look, call.
const tools = await discoverMCPTools({ search: ['file'] });
// Returns: All file-related tools with full schemas
const schema = await getToolSchema('mcp__filesystem__read_file');
// Returns: Complete JSON Schema for validation
const result = await callMCPTool('mcp__filesystem__read_file', { file_path: '/path/to/file.txt' });
// Executes: Actual tool call with parameters

// Of each what code written for the other tool looks at.
const reading = tools.find(tool => tool.name === 'mcp__filesystem__read_file');
return {
  found: tools.filter(tool => tool.name.startsWith('mcp__filesystem__')).map(tool => tool.name).sort(),
  parameters: [reading.parameters.required, Object.keys(schema.parameters.properties)],
  named: [schema.name, typeof reading.description, typeof schema.description],
  result,
};
