# attack: list the interfaces
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

assert socket.if_nameindex()
