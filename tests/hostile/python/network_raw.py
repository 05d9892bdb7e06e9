# attack: make packets by hand
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside as root

import _socket

_socket.socket(_socket.AF_INET, _socket.SOCK_RAW, _socket.IPPROTO_ICMP).close()
