# attack: listen with a socket that is there
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: a connected socket cannot listen outside either

import socket

socket.socketpair()[0].listen()
