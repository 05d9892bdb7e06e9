# attack: ask for much and never read the answers
# outcome: timeout did not end within
# control: none: there is no channel outside
# limits: timeout_seconds = 1

import json
import os
import time

import _lockhouse

question = json.dumps({"bytes": 200_000}).encode()
for _ in range(60):
    _lockhouse.start_call("fixture", "big", question)
_lockhouse.flush()
time.sleep(60)
