# attack: send a name twice, to be checked by one value and sent by the other
# outcome: ok 4
# control: none: there is no MCP server outside

import json

import _lockhouse

done, payload = _lockhouse.call("fixture", "add", b'{"a": 1, "b": 2, "b": 3}')
json.loads(payload)["structured"]["sum"]
