# attack: resolve a name, below socket
# outcome: error name resolution
# control: outside

import _socket

_socket.getaddrinfo("localhost", 80)
