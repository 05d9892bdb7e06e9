# attack: make a socket for IPv6
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: some hosts have no IPv6

import _socket

_socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM)
