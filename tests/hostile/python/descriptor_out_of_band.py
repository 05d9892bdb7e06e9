# attack: send out-of-band data on a unix socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: kernels may leave it out

import socket

one, two = socket.socketpair()
one.send(b"x", socket.MSG_OOB)
