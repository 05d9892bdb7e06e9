# attack: send a descriptor to somebody
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

import array
import socket

one, two = socket.socketpair()
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
