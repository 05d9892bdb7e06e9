# attack: have the interpreter write to the channel when it crashes
# outcome: killed the worker
# control: none: there is no channel outside

import faulthandler

import _lockhouse

faulthandler.enable(_lockhouse.fileno())
faulthandler._sigsegv()
