# attack: open a netlink socket
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import _socket

_socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, 0).close()
