# attack: give a socket that is there a name
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import socket

socket.socketpair()[0].bind("\0lockhouse-bound-{TCP}")
