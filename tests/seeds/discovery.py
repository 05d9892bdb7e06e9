# The same in Python.
from mcp_tools import callMCPTool, discoverMCPTools, getToolSchema

tools = discoverMCPTools({'search': ['file']})
schema = getToolSchema('mcp__filesystem__read_file')
result = callMCPTool('mcp__filesystem__read_file', {'file_path': '/path/to/file.txt'})

reading = next(tool for tool in tools if tool['name'] == 'mcp__filesystem__read_file')
{
    'found': sorted(tool['name'] for tool in tools if tool['name'].startswith('mcp__filesystem__')),
    'parameters': [reading['parameters']['required'], list(schema['parameters']['properties'])],
    'named': [schema['name'], 'string' if isinstance(reading['description'], str) else None, 'string' if isinstance(schema['description'], str) else None],
    'result': result,
}
