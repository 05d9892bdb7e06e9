# attack: connect over TCP, below socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import _socket

_socket.socket().connect(("127.0.0.1", {TCP}))
