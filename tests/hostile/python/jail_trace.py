# attack: watch the engine's own functions
# outcome: ok 1
# control: none: there is no engine outside

# Its frames belong to the same process: nothing in them is a secret, and what it changes there is its own answer.
import sys


def trace(frame, event, argument):
    frame.f_trace_opcodes = False
    return trace


sys.settrace(trace)
sys._getframe().f_back.f_trace = trace
1
