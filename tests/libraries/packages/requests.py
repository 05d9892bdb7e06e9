# package: requests
# error: there is no network; use a tool of an MCP server instead
import requests
requests.get("http://127.0.0.1:1")
