# attack: connect to a unix socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import _socket

_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM).connect("{DIR}/socket")
