# attack: talk to the host of a virtual machine
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: kernels without virtual sockets refuse it outside

import _socket

_socket.socket(40, _socket.SOCK_STREAM).close()
