# attack: craft a code object that reads past its constants
# outcome: killed the worker
# control: none: the control would crash as well

import os
import types


def load():
    return "x"


# LOAD_CONST with an index far outside of the tuple, or as an instruction that does not exist.
extended = bytes([144, 255, 144, 255, 144, 255, 100, 255, 83, 0]) * 4
crafted = load.__code__.replace(co_code=extended, co_stacksize=8)
try:
    types.FunctionType(crafted, {})()
except BaseException:
    pass
os.abort()
