# attack: replace what reports errors
# outcome: error reported as it is
# control: none: outside it would succeed by hiding the error

import sys

sys.excepthook = sys.unraisablehook = lambda *arguments: None
raise ValueError("reported as it is")
