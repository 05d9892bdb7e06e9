# attack: append to a file by a log handler
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import logging

logging.FileHandler("{DIR}/new").emit(logging.makeLogRecord({"msg": "x"}))
