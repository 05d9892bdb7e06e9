# attack: start a shell on a terminal of its own
# outcome: error out of pty devices
# control: outside
# preload: pty

import pty

pty.spawn(["/bin/true"])
