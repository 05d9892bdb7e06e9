# attack: send over UDP
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import _socket

_socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {UDP}))
