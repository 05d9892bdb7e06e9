# attack: walk the stack frames to those of the runner and use their variables
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import sys

frame, names = sys._getframe(), {}
while frame is not None:
    names.update(frame.f_globals)
    frame = frame.f_back
names["sys"].modules["posix"].open("{DIR}/file", 0)
