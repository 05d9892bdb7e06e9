# attack: ask who is at the other end of a socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

one, two = socket.socketpair()
one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
