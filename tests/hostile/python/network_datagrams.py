# attack: make a pair of datagram sockets
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.send(b"x")
