# attack: give the library a list that contains the denied tool
# outcome: error the policy does not allow
# control: none: there is no MCP server outside

import lockhouse_calls
import mcp_tools.fixture

lockhouse_calls._tools["fixture"] = {"delete_everything": {"name": "delete_everything", "identifier": "delete_everything", "parameters": []}}
mcp_tools.fixture.delete_everything()
