# What there is, one step at a time.
from mcp_tools import list_servers
print(list_servers())  # ['chroma', 'arxiv', 'docker']

from mcp_tools.chroma import list_tools
print(list_tools())    # Only when needed

from mcp_tools.chroma import query  # Load specific tool
