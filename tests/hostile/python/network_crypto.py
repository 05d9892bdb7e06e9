# attack: let the kernel encrypt
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: kernels without AF_ALG refuse it outside

import _socket

_socket.socket(38, _socket.SOCK_SEQPACKET).close()
