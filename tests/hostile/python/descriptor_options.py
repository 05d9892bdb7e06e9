# attack: set an option of a socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

one, two = socket.socketpair()
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
