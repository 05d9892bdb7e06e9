# attack: flood the supervisor with requests
# outcome: limit tool call limit
# outcome: timeout did not end within
# outcome: killed in flight
# control: none: there is no channel outside
# limits: timeout_seconds = 1

import _lockhouse

while True:
    _lockhouse.start_call("fixture", "nothing", b"{}")
    _lockhouse.flush()
