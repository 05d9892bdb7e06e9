# attack: connect to an abstract unix socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import _socket

_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM).connect("\0{ABSTRACT}")
