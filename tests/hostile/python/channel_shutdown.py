# attack: end one direction of the channel
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: there is no channel outside

import socket

import _lockhouse

socket.socket(fileno=_lockhouse.fileno()).shutdown(socket.SHUT_RD)
