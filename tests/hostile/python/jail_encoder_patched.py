# attack: patch what encodes the answer
# outcome: ok {"a":[1,2.5,null,true]}
# control: none: there is no engine outside

import json

json.dumps = json.loads = json.JSONEncoder.encode = json.JSONEncoder.default = None
{"a": [1, 2.5, None, True]}
