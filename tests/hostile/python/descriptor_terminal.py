# attack: ask about the terminal
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: a control has no terminal

import os

os.get_terminal_size(0)
