# attack: receive a descriptor from somebody
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

one, two = socket.socketpair()
two.send(b"x")
one.recvmsg(1, socket.CMSG_SPACE(64))
