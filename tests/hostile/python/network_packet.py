# attack: see every packet
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside as root

import _socket

_socket.socket(_socket.AF_PACKET, _socket.SOCK_RAW, 0).close()
