# attack: connect a socket that is there to a unix socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: a connected socket cannot be connected again outside either

import socket

socket.socketpair()[0].connect("{DIR}/socket")
