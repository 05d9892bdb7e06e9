# attack: have the interpreter dump a traceback on the channel
# outcome: killed broke the protocol
# control: none: there is no channel outside

import faulthandler

import _lockhouse

faulthandler.dump_traceback(_lockhouse.fileno())
while True:
    pass
