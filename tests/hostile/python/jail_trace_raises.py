# attack: break the engine's own functions by a trace
# outcome: error broken
# control: none: there is no engine outside

import sys


def trace(frame, event, argument):
    if frame.f_code.co_filename != "<code>":
        raise ValueError("broken")
    return trace


sys._getframe().f_back.f_trace = trace
sys.settrace(trace)
1
