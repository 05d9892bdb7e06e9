# attack: take the words of the seal off open
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import io

getattr(open, "__wrapped__", open)("{DIR}/file").read()
