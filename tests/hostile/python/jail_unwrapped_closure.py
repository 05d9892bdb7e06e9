# attack: take the original out of the closure of what refuses
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

import os

original = os.listdir
for cell in getattr(original, "__closure__", None) or ():
    original = cell.cell_contents if callable(cell.cell_contents) else original
assert original("{DIR}")
