# attack: reach a function of a function by a pickle
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import pickle

assert pickle.loads(b"\x80\x04cposix\nopen\n(V{DIR}/file\nI0\ntR.") > 2
