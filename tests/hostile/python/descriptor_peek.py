# attack: look at data without taking it
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

one, two = socket.socketpair()
two.send(b"x")
one.recv(1, socket.MSG_PEEK)
