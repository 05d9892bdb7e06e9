# attack: connect over TCP with a socket
# outcome: error not available in the Lockhouse sandbox: there is no network
# control: outside

import socket

socket.socket().connect(("127.0.0.1", {TCP}))
